import { signal } from '@preact/signals'
import { renew, YOUNG_MS } from './answers.ts'
import type { Path } from './interface.ts'
import { toAbsolute } from './place.ts'
import { READS } from './reads.ts'

/** Whether the service tells of changes. While it does not, it is asked every half minute. */
export type Connection = 'connecting' | 'live' | 'lost' | 'refused'

export const connection = signal<Connection>('connecting')

/** How often is asked for what nobody tells changes of. */
const ASK_MS = 30_000
/** What is told of is asked for now and then as well: data grows stale without a change. */
const ASK_ANYWAY_MS = 300_000
/** A dataset is committed in pieces, and others are computed from it: what comes together is asked for once. */
const GATHER_MS = 200
/** A back-fill commits all the time; nobody reads faster. */
const PAUSE_MS = 1_000
/** Whoever is refused comes back so much later, as the refusal asks. */
const RETRY_MS = 60_000

/** Since when every change was told, in Unix milliseconds. */
let toldSince = Number.POSITIVE_INFINITY
let stream: EventSource | undefined
let retry: ReturnType<typeof setTimeout> | undefined

let changed = new Set<string>()
let isAnything = false
/** Whether a moment is set at which is asked, or is just past. */
let isSet = false

function askChanged(): void {
  const [datasets, all] = [changed, isAnything]
  changed = new Set()
  isAnything = false
  renew((path) => all || (READS[path]?.some((dataset) => datasets.has(dataset)) ?? false))
  setTimeout(() => {
    isSet = false
    if (changed.size > 0 || isAnything) gather()
  }, PAUSE_MS)
}

function gather(): void {
  if (isSet) return
  isSet = true
  setTimeout(askChanged, GATHER_MS)
}

function connect(): void {
  clearTimeout(retry)
  connection.value = 'connecting'
  const source = new EventSource(toAbsolute('data/stream'))
  source.onopen = () => {
    connection.value = 'live'
    toldSince = Date.now()
  }
  source.onerror = () => {
    toldSince = Number.POSITIVE_INFINITY
    // The browser comes back by itself, and hears what it missed, unless it was refused.
    const isRefused = source.readyState === EventSource.CLOSED
    connection.value = isRefused ? 'refused' : 'lost'
    if (isRefused) retry = setTimeout(connect, RETRY_MS)
  }
  source.addEventListener('change', ({ data }: MessageEvent<string>) => {
    const { dataset }: { dataset: string } = JSON.parse(data)
    changed.add(dataset)
    gather()
  })
  source.addEventListener('reset', () => {
    isAnything = true
    gather()
  })
  stream = source
}

function disconnect(): void {
  clearTimeout(retry)
  stream?.close()
  stream = undefined
  toldSince = Number.POSITIVE_INFINITY
}

/** What was asked before the stream stood may have changed unheard, and of some answers nobody tells. */
const isTold = (path: Path, askedAt: number) => READS[path] !== undefined && askedAt >= toldSince

/** Keeps what is shown as new as the service has it, while somebody may look at it. */
export function followChanges(): void {
  const isVisible = () => document.visibilityState === 'visible'
  document.addEventListener('visibilitychange', () => {
    disconnect()
    if (!isVisible()) return
    connect()
    renew((_path, askedAt) => Date.now() - askedAt > YOUNG_MS)
  })
  setInterval(() => {
    if (!isVisible()) return
    renew((path, askedAt, hasFailed) => hasFailed || !isTold(path, askedAt) || Date.now() - askedAt > ASK_ANYWAY_MS)
  }, ASK_MS)
  if (isVisible()) connect()
}
