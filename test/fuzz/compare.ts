import { setTimeout as wait } from 'node:timers/promises'

/** A response without its time-dependent parts. */
interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const isSaid = (name: string) => /^(etag|link|content-type|x-total-count|x-series-.*)$/.test(name)

async function ask(url: string): Promise<Answer> {
  const response = await fetch(url, { headers: { 'accept-encoding': 'identity' } })
  const headers = Object.fromEntries([...response.headers].filter(([name]) => isSaid(name)))
  return { status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) }
}

/** The difference between two responses; undefined if there is none. Rejections with status 503 are not compared. */
function findDifference(one: Answer, other: Answer): string | undefined {
  if (one.status === 503 || other.status === 503) return undefined
  if (one.status !== other.status) return `status ${one.status}, and ${other.status}`
  if (one.status !== 200) return undefined
  for (const name of new Set([...Object.keys(one.headers), ...Object.keys(other.headers)])) {
    const [here, there] = [one.headers[name], other.headers[name]]
    if (here !== there) return `${name} ${here}, and ${there}`
  }
  return one.body.equals(other.body)
    ? undefined
    : `${one.body.length} bytes that are not the other ${other.body.length}`
}

/** Data may change between the two requests; they are then repeated. */
const ATTEMPTS = 5

/** Responses about the current state. */
const OF_THE_MOMENT = /^\/data\/(status|usage)|^\/(healthz|readyz|metrics)/

/** Responses that a service caches for HELD_MS, regardless of new data. */
const HELD = /^\/data\/changes/
const HELD_MS = 5_000

/** The difference between the responses of two services over the same data; undefined if they have the same bytes. */
export async function compareAnswers(one: string, other: string, path: string): Promise<string | undefined> {
  if (OF_THE_MOMENT.test(path)) return undefined
  let difference: string | undefined
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt > 0 && HELD.test(path)) await wait(HELD_MS)
    const [here, there] = await Promise.all([ask(one + path), ask(other + path)])
    difference = findDifference(here, there)
    if (difference === undefined) return undefined
  }
  return `not as the other service answers: ${difference}`
}
