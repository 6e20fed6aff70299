import { describe, expect, it } from 'vitest'
import { groupBy } from '../../shared/group-by.ts'
import { DAY_MS, toBucketStart } from '../../shared/intervals.ts'
import { countExecuted } from '../support/executed-files.ts'

describe('countExecuted', () => {
  it('returns the files of called functions and not those of read constants', async () => {
    expect(await countExecuted(async () => groupBy([DAY_MS], () => ''))).toEqual(['shared/group-by.ts'])
    expect(await countExecuted(async () => toBucketStart(DAY_MS, '1d'))).toEqual(['shared/intervals.ts'])
    expect(await countExecuted(async () => DAY_MS)).toEqual([])
  })
})
