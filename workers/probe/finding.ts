import type { ErrorCode } from '../../shared/errors.ts'

/** Time of the probe: the newest value, the recent past, or the first days of the API's history. */
export type ProbeTime = 'now' | 'history' | 'oldest'

/**
 * Result of a probe. `coarser`: data at a longer step than requested. `nothing`: a response without data. `unknown`:
 * the provider does not know the id. `no-store`: the probe needs the database, which is unavailable.
 */
export type Finding =
  | 'works'
  | 'coarser'
  | 'nothing'
  | 'unconfigured'
  | 'refused'
  | 'exhausted'
  | 'unreached'
  | 'malformed'
  | 'unknown'
  | 'no-store'

/** Result of one small request to a provider for a dataset. */
export interface Probe {
  readonly provider: string
  readonly dataset: string
  readonly asked: ProbeTime
  readonly finding: Finding
  /** Error message of the provider or of the response check; empty if the probe succeeded. */
  readonly reason: string
  /** The probed entity. */
  readonly entity: string
  /** One row in its stored form. */
  readonly sample: object | undefined
  /** Requests sent, and the remaining quota reported by the provider; undefined if it reports none. */
  readonly requests: number
  readonly quotaLeft: number | undefined
}

const FINDINGS: Partial<Record<ErrorCode, Finding>> = {
  provider_unavailable: 'unreached',
  provider_rejected: 'refused',
  provider_malformed: 'malformed',
  rows_rejected: 'malformed',
  provider_exhausted: 'exhausted',
  provider_unknown: 'unknown',
  provider_unconfigured: 'unconfigured',
  storage: 'no-store',
}

export const toFinding = (code: ErrorCode): Finding => FINDINGS[code] ?? 'malformed'
