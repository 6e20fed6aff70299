// biome-ignore-all lint/performance/noBarrelFile: what the package has is named in one place.
export { createDaoData, type DaoData } from './client.ts'
export { toColumns } from './columns.ts'
export type { ConnectionOptions, RequestOptions } from './connection.ts'
export type { Answer, Facts } from './facts.ts'
export { ConnectionError, type Problem, type ProblemCode, ProblemError, UnexpectedAnswerError } from './failure.ts'
export type { Answered, Download, Format, OperationName, Query, RecordOf, TableQuery } from './operation.ts'
export type { components, operations, paths } from './schema.ts'
export type { ChangeEvent, Dataset, ResetEvent, StreamEvent, StreamOptions } from './stream.ts'
