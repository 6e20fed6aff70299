import { signal } from '@preact/signals'
import { renew, YOUNG_MS } from './answers.ts'
import { READS } from './declared.ts'
import type { Path } from './interface.ts'
import { toAbsolute } from './place.ts'

/** State of the change stream. While it is not live, data is requested every 30 seconds. */
export type Connection = 'connecting' | 'live' | 'lost' | 'refused'

export const connection = signal<Connection>('connecting')

/** Polling interval for answers without change events. */
const POLL_MS = 30_000
/** Polling interval for answers with change events: data becomes stale without an event. */
const REFRESH_MS = 300_000
/** A dataset is stored in several parts, and others are computed from it: events within this time cause one request. */
const GATHER_MS = 200
/** Pause between requests: a back-fill sends events continuously, and readers need no faster updates. */
const PAUSE_MS = 1_000
/** Delay before reconnecting after the service rejected the stream, as its `Retry-After` requests. */
const RETRY_MS = 60_000

/** Start of the uninterrupted change stream, in Unix milliseconds. */
let connectedAt = Number.POSITIVE_INFINITY
let stream: EventSource | undefined
let retry: ReturnType<typeof setTimeout> | undefined

let changed = new Set<string>()
let isAnything = false
/** Whether a refresh is scheduled, or has just run. */
let isSet = false

function refetchChanged(): void {
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
  setTimeout(refetchChanged, GATHER_MS)
}

function connect(): void {
  clearTimeout(retry)
  connection.value = 'connecting'
  const source = new EventSource(toAbsolute('data/stream'))
  source.onopen = () => {
    connection.value = 'live'
    connectedAt = Date.now()
  }
  source.onerror = () => {
    connectedAt = Number.POSITIVE_INFINITY
    // The browser reconnects and receives missed events, unless the stream was rejected.
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
  connectedAt = Number.POSITIVE_INFINITY
}

/** Data requested before the stream was open may have changed without an event, and some answers have no events. */
const isPushed = (path: Path, requestedAt: number) => READS[path] !== undefined && requestedAt >= connectedAt

/**
 * Keeps shown answers up to date while the page is visible. Without the stream, data is requested every five minutes: many
 * readers may see an embedded chart.
 */
export function followChanges({ hasStream }: { hasStream: boolean }): void {
  const isVisible = () => document.visibilityState === 'visible'
  document.addEventListener('visibilitychange', () => {
    disconnect()
    if (!isVisible()) return
    if (hasStream) connect()
    renew((_path, requestedAt) => Date.now() - requestedAt > YOUNG_MS)
  })
  setInterval(() => {
    if (!isVisible()) return
    renew(
      (path, requestedAt, hasFailed) =>
        hasFailed || (hasStream && !isPushed(path, requestedAt)) || Date.now() - requestedAt > REFRESH_MS,
    )
  }, POLL_MS)
  if (hasStream && isVisible()) connect()
}
