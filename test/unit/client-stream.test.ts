import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { createConnection } from '../../clients/typescript/src/connection.ts'
import { followChanges, type StreamEvent, type StreamOptions } from '../../clients/typescript/src/stream.ts'
import { type StubService, startStubService, type Turn } from '../support/stub-service.ts'

const services: StubService[] = []
afterEach(async () => {
  for (const service of services.splice(0)) await service.close()
})

const SOON = 'retry: 1\n: open\n\n'
const toEvent = (id: number, dataset = 'prices') => `id: ${id}-0\nevent: change\ndata: {"dataset":"${dataset}"}\n\n`

/** Writes the parts in sequence, then ends, breaks or keeps the connection. */
const send =
  (parts: readonly (string | Buffer)[], end: 'ends' | 'breaks' | 'stays' = 'ends'): Turn =>
  async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const part of parts) {
      await new Promise((resolve) => response.write(part, resolve))
      await wait(5)
    }
    if (end === 'ends') response.end()
    if (end === 'breaks') response.destroy()
  }

async function start(...turns: readonly Turn[]) {
  const service = await startStubService(...turns)
  services.push(service)
  const connection = createConnection({ baseUrl: service.url })
  const follow = (options: StreamOptions = {}) => followChanges(connection, '/data/stream', {}, options)
  const take = async (count: number, options: StreamOptions = {}) => {
    const seen: StreamEvent[] = []
    for await (const event of follow(options)) if (seen.push(event) === count) break
    return seen
  }
  const resumed = () => service.requests.map(({ headers }) => headers['last-event-id'])
  return { ...service, follow, take, resumed }
}

const ids = (events: readonly StreamEvent[]) => events.map(({ id }) => id)

describe('followChanges', () => {
  it('parses events split at any byte', async () => {
    const bytes = Buffer.from(
      `${SOON}${toEvent(1)}id: 2-0\n\n: é still here\n\n${toEvent(3, 'tvl')}id: 4-0\nevent: reset\ndata: {}\n\n`,
    )
    const { take } = await start(
      send(
        [...bytes].map((byte) => Buffer.from([byte])),
        'stays',
      ),
    )
    expect(await take(3)).toEqual([
      { type: 'change', id: '1-0', dataset: 'prices' },
      { type: 'change', id: '3-0', dataset: 'tvl' },
      { type: 'reset', id: '4-0' },
    ])
  })

  it('resumes after the last event when the stream ends, breaks, is rejected or stays silent', async () => {
    const busy: Turn = (response) => response.writeHead(503, { 'retry-after': '0' }).end()
    const { take, resumed } = await start(
      send([SOON, toEvent(1)]),
      send([toEvent(2), 'id: 3-0\n\n', 'id: 4-0\nevent: change\nda'], 'breaks'),
      busy,
      (response) => response.writeHead(500, { 'retry-after': '0' }).end(),
      (response) => response.destroy(),
      send([': open\n\n'], 'stays'),
      send([toEvent(4), toEvent(5)], 'stays'),
    )
    expect(ids(await take(4, { silenceMs: 200 }))).toEqual(['1-0', '2-0', '4-0', '5-0'])
    expect(resumed()).toEqual([undefined, '1-0', '3-0', '3-0', '3-0', '3-0', '3-0'])
  })

  it('reconnects if the service accepts a connection but sends nothing', async () => {
    const { take, resumed } = await start(send([SOON, toEvent(1)]), () => undefined, send([toEvent(2)], 'stays'))
    expect(ids(await take(2, { silenceMs: 200 }))).toEqual(['1-0', '2-0'])
    expect(resumed()).toEqual([undefined, '1-0', '1-0'])
  })

  it('starts after lastEventId', async () => {
    const { take, resumed } = await start(send([toEvent(8)], 'stays'))
    await take(1, { lastEventId: '7-0' })
    expect(resumed()).toEqual(['7-0'])
  })

  it('closes its connection when the reader stops', async () => {
    const { take, requests } = await start(send([SOON, toEvent(1)], 'stays'))
    await take(1)
    await expect.poll(() => requests[0]?.socket.destroyed).toBe(true)
    expect(requests.length).toBe(1)
  })

  it('aborts on its signal during a read and during a wait', async () => {
    const reading = await start(send([SOON, toEvent(1)], 'stays'))
    const waiting = await start((response) => response.writeHead(503, { 'retry-after': '600' }).end())
    for (const { follow, requests } of [reading, waiting]) {
      const [stop, reason] = [new AbortController(), new Error('enough')]
      const events = follow({ signal: stop.signal })
      const ended = (async () => {
        for await (const _ of events);
      })()
      await expect.poll(() => requests.length).toBe(1)
      stop.abort(reason)
      await expect(ended).rejects.toBe(reason)
      await expect(follow({ signal: stop.signal }).next()).rejects.toBe(reason)
    }
  })

  it('throws for a rejection that is not temporary', async () => {
    const { follow, requests } = await start((response) => response.writeHead(401).end())
    await expect(follow().next()).rejects.toMatchObject({ name: 'ProblemError', status: 401 })
    expect(requests.length).toBe(1)
  })
})
