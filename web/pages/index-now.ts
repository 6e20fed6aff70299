import { useAnswer } from '../answers.ts'
import { toQuestion } from '../interface.ts'

/** The newest stored value of the Index. Every card with a value of the Index shows this one. */
export function useIndexNow() {
  const { received, failure } = useAnswer(
    toQuestion('/data/index/historic', { interval: '5m', order: 'desc', limit: 1 }),
  )
  const [point] = received?.data ?? []
  return { point, at: point?.createdAt, valueUsd: point?.valueUsd ?? null, facts: received?.facts, failure }
}
