import { setTimeout as wait } from 'node:timers/promises'

/** A response without its time-dependent parts. */
interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const isSaid = (name: string) => /^(etag|link|content-type|x-total-count|x-series-.*)$/.test(name)

async function request(url: string): Promise<Answer> {
  const response = await fetch(url, { headers: { 'accept-encoding': 'identity' } })
  const headers = Object.fromEntries([...response.headers].filter(([name]) => isSaid(name)))
  return { status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) }
}

/** The difference between two responses; undefined if there is none. Rejections with status 503 are not compared. */
function findDifference(a: Answer, b: Answer): string | undefined {
  if (a.status === 503 || b.status === 503) return undefined
  if (a.status !== b.status) return `status ${a.status}, and ${b.status}`
  if (a.status !== 200) return undefined
  for (const name of new Set([...Object.keys(a.headers), ...Object.keys(b.headers)])) {
    const [here, there] = [a.headers[name], b.headers[name]]
    if (here !== there) return `${name} ${here}, and ${there}`
  }
  return a.body.equals(b.body) ? undefined : `${a.body.length} bytes that are not the other ${b.body.length}`
}

/** Data may change between the two requests; they are then repeated. */
const ATTEMPTS = 5

/** Responses about the current state. */
const VOLATILE = /^\/data\/(status|usage)|^\/(healthz|readyz|metrics)/

/** Responses that a service caches for HELD_MS, regardless of new data. */
const HELD = /^\/data\/changes/
const HELD_MS = 5_000

/** The difference between the responses of two services over the same data; undefined if they have the same bytes. */
export async function compareAnswers(a: string, b: string, path: string): Promise<string | undefined> {
  if (VOLATILE.test(path)) return undefined
  let difference: string | undefined
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (attempt > 0 && HELD.test(path)) await wait(HELD_MS)
    const [here, there] = await Promise.all([request(a + path), request(b + path)])
    difference = findDifference(here, there)
    if (difference === undefined) return undefined
  }
  return `not as the other service answers: ${difference}`
}
