import type { DataError } from '../../shared/errors.ts'
import type { Reading, Step } from '../../shared/ledger/ledger.ts'
import type { Entity, Omitted, Run } from '../../workers/job/define-job.ts'
import type { JobState } from '../../workers/job/state.ts'
import { silent } from './silent.ts'

type TestRun<E extends Entity> = Omit<Run<unknown, E>, 'provider'>

/** A run for tests that call a provider directly; records the provider's reports. */
export function toRun<E extends Entity = Entity>(input: Partial<TestRun<E>> = {}) {
  const refused = new Map<number, DataError>()
  const [read, putOff]: [number[], number[]] = [[], []]
  const readings: Reading[] = []
  const steps: Step[] = []
  const { entities = [] } = input
  const omitted = new Map<number, Omitted>()
  const run: TestRun<E> = {
    providerName: 'somewhere',
    entities,
    peers: { all: entities, own: entities },
    passedOn: [],
    slot: 0,
    range: undefined,
    state: { get: async () => undefined, set: () => {}, save: async () => {} },
    noteRead: (entities, time) => {
      read.push(...entities.map(({ key }) => key))
      readings.push(...entities.map(({ key: entity }) => ({ entity, ...time })))
    },
    refuse: ({ key }, reason) => void refused.set(key, reason),
    omit: ({ key }, elements) => void omitted.set(key, elements),
    putOff: (entities) => void putOff.push(...entities.map(({ key }) => key)),
    noteStep: ({ from, to }, seconds) => void steps.push({ from, to, seconds }),
    noteMore: () => {},
    log: silent,
    signal: new AbortController().signal,
    ...input,
  }
  return { run, refused, read, readings, omitted, putOff, steps }
}

/** A state that survives a run. */
export function createState(): JobState {
  const values = new Map<string, string>()
  const set = (name: string, value: string) => void values.set(name, value)
  return { get: async (name) => values.get(name), set, save: async (name, value) => set(name, value) }
}
