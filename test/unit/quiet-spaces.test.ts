import { expect, it } from 'vitest'
import { toQuietNote } from '../../shared/store/store.ts'

const old = { space: 'old.eth', since: '2024-01-02' }

it('toQuietNote uses the singular for one space', () => {
  expect(toQuietNote([])).toBe('')
  expect(toQuietNote([old])).toBe(
    'no new proposal for 60 days in 1 space, which may have moved: old.eth (since 2024-01-02)',
  )
  expect(toQuietNote([old, { space: 'none.eth', since: null }])).toContain('in 2 spaces, which may have moved: ')
})
