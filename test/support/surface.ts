import { toDocumentedMembers } from '../../api/openapi/members.ts'
import type { OpenApi, Operation } from '../../api/openapi/shape.ts'

const toParameterLines = (path: string, { parameters }: Operation) =>
  parameters.map(({ name, required }) => `${path} takes ${name}${required ? ', required' : ''}`)

const toAnswerLines = (document: OpenApi, path: string, { responses, 'x-formats': formats = {} }: Operation) => [
  ...Object.entries(responses[200].content).flatMap(([type, { schema }]) => [
    `${path} answers with ${type}`,
    ...toDocumentedMembers(document, schema).map((member) => `${path} has ${member.path}: ${member.type}`),
  ]),
  ...Object.values(formats).map(({ mediaType }) => `${path} answers with ${mediaType}`),
]

/** The public interface, a line per item: accepted parameters, and members and types of responses. */
export const toSurface = (document: OpenApi): readonly string[] =>
  Object.entries(document.paths).flatMap(([path, { get }]) => [
    ...toParameterLines(path, get),
    ...toAnswerLines(document, path, get),
  ])
