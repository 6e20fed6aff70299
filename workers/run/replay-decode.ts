import { DataError } from '../../shared/errors.ts'
import type { JobPayload } from '../../shared/queue/queues.ts'
import type { StoredRun } from '../../shared/store/store.ts'
import { createHttpClients } from '../http/client.ts'
import {
  type CheckedRows,
  type Confirmation,
  type ConfirmationInput,
  type ConfirmationReplay,
  type Job,
  parsePayload,
  toEntities,
  toPeers,
} from '../job/define-job.ts'
import type { JobState } from '../job/job-state.ts'
import { toAnswersFrom, toAssignment } from './assignment.ts'
import { type Collected, collect } from './collect.ts'
import { type AnswerSource, openStoredAnswers, toStoredSource } from './replay-answers.ts'
import type { JobContext } from './run-job.ts'

export type DecodeContext = Pick<JobContext, 'config' | 'db' | 'registry' | 'log' | 'redact'>

/** The rows that the present code decodes from the stored answers of a run. */
export interface DecodedRun {
  readonly run: StoredRun
  readonly payload: JobPayload
  readonly collected: Collected
}

/**
 * Decodes the answers of a stored run again.
 * @throws DataError `payload`, with the request, if its answer or body is not stored; `config` if a key is not set.
 */
export async function decodeRun(
  job: Job,
  run: StoredRun,
  context: DecodeContext,
  decisions?: ConfirmationReplay,
): Promise<DecodedRun> {
  const source = toStoredSource(context.db, job.dataset.name, run)
  const { missing, ...decoded } = await decodeAnswers(job, run, context, source, decisions)
  if (missing !== undefined) throw missing
  throwIfUnconfigured(run, decoded.collected)
  return decoded
}

/**
 * Decodes the answers of a run, without any network. The clock, the job's state and the refusals of the plausibility
 * check are those of the run. `missing` is the first request without a stored answer: its provider failed.
 */
export async function decodeAnswers(
  job: Job,
  run: StoredRun,
  context: DecodeContext,
  source: AnswerSource,
  decisions?: ConfirmationReplay,
): Promise<DecodedRun & { readonly missing: DataError | undefined }> {
  const answers = await openStoredAnswers(source, run)
  const unlimited = { take: async () => {} }
  // New clients and collectors for each run: an answer that they cache would hide a missing one.
  const http = createHttpClients({
    log: context.log,
    backoffMs: 0,
    limitsOf: () => ({ total: unlimited, history: unlimited }),
    stored: answers,
  })
  const now = () => run.collectedAt
  const collectors = job.connect({ ...context, http, now })
  const payload = parsePayload(job, run.payload)
  const entities = toEntities(job, context, payload)
  const implausible = new Map(run.outcome.implausible.map((one) => [one.provider, new Set(one.entities)]))
  const confirmation =
    payload.kind === 'slot' && decisions !== undefined
      ? await openAgain(decisions, run, job.dataset.entity ?? '', {
          ...{ entities, slot: payload.slot, log: context.log },
          sources: collectors.map(({ provider, isWitness = false, covers }) => ({ provider, isWitness, covers })),
          answersFrom: toAnswersFrom(job, payload) ?? Number.NEGATIVE_INFINITY,
        })
      : undefined
  const checkHistory =
    payload.kind === 'range' && implausible.size > 0
      ? await job.openHistoryCheck?.(
          context.db,
          entities.map(({ key }) => key),
          payload,
        )
      : undefined
  const assignment = toAssignment({
    ...(confirmation && { confirmation }),
    ...{ job, payload, entities, now, log: context.log, redact: context.redact },
    peers: toPeers(job, context, payload),
    state: toState(run),
    signal: new AbortController().signal,
    checkAgain: (provider, checked) =>
      checkHistory?.(provider, checked, { log: context.log }) ??
      withoutRefused(job, provider, checked, implausible.get(provider)),
  })
  const collected = await collect(collectors, assignment, context.log)
  await confirmation?.takeOut()
  decisions?.note(collected.results, run.collectedAt)
  await confirmation?.store()
  return { run, payload, collected, missing: answers.findMissing() }
}

/**
 * Opens the confirmation of a slot again. A stored answer may contain entities that the present code would not request from
 * its provider. Their rows are ignored.
 */
async function openAgain(
  decisions: ConfirmationReplay,
  { collectedAt }: StoredRun,
  entityColumn: string,
  input: ConfirmationInput,
): Promise<Confirmation> {
  const confirmation = await decisions.open(input, collectedAt)
  const requested = new Map(input.sources.map(({ provider }) => [provider, new Set<number>()]))
  return {
    ...confirmation,
    isRequested(provider, entity) {
      const isRequested = confirmation.isRequested(provider, entity)
      if (isRequested) requested.get(provider)?.add(entity.key)
      return isRequested
    },
    take(provider, checked) {
      const rows = checked.rows.filter((row) => requested.get(provider)?.has(Number(Reflect.get(row, entityColumn))))
      return confirmation.take(provider, { ...checked, rows })
    },
  }
}

/** The values that the run read. Values that the code sets are dropped after the run. */
function toState({ state }: StoredRun): JobState {
  const own = new Map<string, string>()
  return {
    get: async (name) => own.get(name) ?? state[name] ?? undefined,
    set: (name, value) => void own.set(name, value),
    save: async (name, value) => void own.set(name, value),
  }
}

function withoutRefused(
  { dataset }: Job,
  provider: string,
  checked: CheckedRows,
  refused: ReadonlySet<number> = new Set(),
): CheckedRows {
  const { entity } = dataset
  if (entity === undefined || refused.size === 0) return checked
  const isRefused = (row: object) => refused.has(Number(Reflect.get(row, entity)))
  const reason = new DataError('provider_malformed', `${provider}: its value was implausible in the run`)
  return {
    ...checked,
    rows: checked.rows.filter((row) => !isRefused(row)),
    refused: new Map([...checked.refused, ...[...refused].map((key) => [key, reason] as const)]),
  }
}

/** Without its key, a provider would decode nothing, and all its rows would look removed. */
function throwIfUnconfigured(run: StoredRun, { answers }: Collected): void {
  const used = new Set(run.outcome.rows.map(({ provider }) => provider))
  for (const { state, reason } of answers.all()) {
    const [provider = ''] = reason.split(':')
    if (state === 'unserved' && used.has(provider) && reason.includes('is not set'))
      throw new DataError('config', `${reason}: a replay needs the settings of the worker (any value of a key will do)`)
  }
}
