import type { Answer } from '../answers/answer.ts'

/** The JSON around the points of one entity. */
export interface Frame {
  readonly before: string
  readonly after: string
}

/** The JSON around the points of a token, as the API returns it. */
export const toTokenFrame = ({ name, id }: { readonly name: string; readonly id: string }): Frame => ({
  before: `{"name":${JSON.stringify(name)},"id":"${id}","data":`,
  after: '}',
})

/** Puts a list of points as JSON into the frame of its owner. */
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
