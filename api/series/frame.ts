import type { Answer } from '../answers/answer.ts'

/** What stands around the points of one entity as JSON. */
export interface Frame {
  readonly before: string
  readonly after: string
}

/** Around the points of a token, as the interface has them. */
export const toTokenFrame = ({ name, id }: { readonly name: string; readonly id: string }): Frame => ({
  before: `{"name":${JSON.stringify(name)},"id":"${id}","data":`,
  after: '}',
})

/** A list of points as JSON within the frame of whose they are. */
export function inFrame<A extends Answer>(answer: A, { before, after }: Frame): A {
  if ('body' in answer) {
    return { ...answer, body: Buffer.concat([Buffer.from(before), answer.body, Buffer.from(after)]) }
  }
  return {
    ...answer,
    digest: `${before} ${answer.digest}`,
    before: before + answer.before,
    after: answer.after + after,
  }
}
