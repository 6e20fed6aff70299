import { describe, expect, it } from 'vitest'
import { readQueueName, toQueueName } from '../../shared/queue/queues.ts'
import { jobs } from '../../workers/jobs/list.ts'
import { selectQueues, toRegistryPart } from '../../workers/programs/queue-classes.ts'

const select = (queues: string) =>
  selectQueues(queues.split(',')).map(({ job, queueClass }) => toQueueName(job.name, queueClass))

describe('selectQueues', () => {
  it('selects both queue classes of datasets and cadences, or one of them', () => {
    expect(select('prices')).toEqual(['prices', 'prices-history'])
    expect(select('prices:history')).toEqual(['prices-history'])
    expect(select('5m:live,tvl')).toEqual(expect.arrayContaining(['prices', 'index', 'tvl', 'tvl-history']))
    expect(select('5m:live,tvl')).not.toContain('prices-history')
    expect(select('prices:live,prices:history')).toEqual(select('prices'))
    expect(select('all:live')).toEqual(jobs.map(({ name }) => name))
    expect(new Set(select('all'))).toEqual(new Set([...select('all:live'), ...select('all:history')]))
  })

  it('selects no history queue of datasets without history', () => {
    expect(select('discord')).toEqual(['discord'])
    expect(select('all:history')).not.toContain('discord-history')
  })

  it.each(['weather', 'prices:past', 'prices:', 'prices:live:history'])('rejects %s', (queue) => {
    expect(() => selectQueues(['tvl', queue])).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringContaining(`no queue is called ${queue};`) }),
    )
  })
})

it('toRegistryPart returns tokens for queues that need no DAOs', () => {
  expect(toRegistryPart(selectQueues(['5m', 'holders:live']))).toBe('tokens')
  expect(toRegistryPart(selectQueues(['prices', 'treasury']))).toBe('whole')
})

it('readQueueName returns the dataset and queue class of a queue name', () => {
  for (const { name: dataset } of jobs) {
    for (const queueClass of ['live', 'history'] as const)
      expect(readQueueName(toQueueName(dataset, queueClass))).toEqual({ dataset, queueClass })
  }
})

describe('jobs', () => {
  it.each(jobs)('$name has history if and only if its dataset says so', ({ history, dataset }) => {
    expect(history !== undefined).toBe(dataset.hasHistory ?? false)
  })
})
