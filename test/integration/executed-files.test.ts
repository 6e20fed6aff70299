import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import prices from '../../workers/jobs/prices.ts'
import { enqueueDue } from '../../workers/schedule/due-slots.ts'
import { countExecuted } from '../support/executed-files.ts'
import { createPricesPipeline, type PricesPipeline, untilDone } from '../support/prices-pipeline.ts'

/**
 * A reader of one slot holds at most this many files in mind. Six of them confirm prices: four of the rule, and those
 * of the providers that the first slot of a token requests in addition. Five store the answers of the providers.
 */
const MOST_FILES = 47

let pipeline: PricesPipeline
beforeEach(async () => {
  pipeline = await createPricesPipeline()
})
afterEach(() => pipeline.close())

describe('price slot', () => {
  it(`executes at most ${MOST_FILES} own files from its payload to its stored rows`, async () => {
    await enqueueDue({ job: prices, queues: pipeline.queues('prices') }, pipeline.scheduler)
    const runner = pipeline.startWorker()
    const files = await countExecuted(() => untilDone(runner, 1))
    expect(await pipeline.stored()).toMatchObject({ tokens: pipeline.liveTokens().length })
    expect(files).toEqual(expect.arrayContaining(['workers/run/run-job.ts', 'shared/store/clickhouse.ts']))
    expect(files.length, files.join('\n')).toBeLessThanOrEqual(MOST_FILES)
  })
})
