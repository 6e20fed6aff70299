import type { ErrorCode } from '../../shared/errors.ts'

/** What a provider was asked for: the newest datum, the recent past, or the first days of the interface's history. */
export type Asked = 'now' | 'history' | 'oldest'

/**
 * What came of it. `coarser` is data at a longer step than asked for; `nothing` is an answer without data, `unknown` one
 * that the provider does not know the id; `no-store` means that the question needs the database, which is away.
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

/** How one provider answered one small question for a dataset. */
export interface Probe {
  readonly provider: string
  readonly dataset: string
  readonly asked: Asked
  readonly finding: Finding
  /** What is wrong, in the words of the provider or of the check of its answer; empty where all is well. */
  readonly reason: string
  /** Whom it was asked about. */
  readonly entity: string
  /** One row as it would be stored. */
  readonly sample: object | undefined
  /** Requests that were sent, and what the provider says is left of its limit; undefined where it says nothing. */
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
