import { z } from 'zod'
import { toArguments, toResultSchema } from './arguments.ts'
import type { Source } from './source.ts'
import type { Json } from './table.ts'

/** A file that has more than fits into an answer. */
export interface FileLink {
  readonly uri: string
  readonly name: string
  readonly mimeType: string
}

/** The result of a call: one sentence about it, the data, and files with the rest where it does not fit. */
export interface ToolAnswer {
  readonly summary: string
  readonly data: Json
  readonly files?: readonly FileLink[]
}

export interface Call<Input> {
  readonly source: Source
  readonly input: Input
  readonly signal: AbortSignal
}

/** A tool with its own types closed over, so that one list can hold all of them. */
export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: ReturnType<typeof toArguments>
  readonly output: ReturnType<typeof toResultSchema>
  /** @throws Mistake for arguments without a meaning, Refused for what the API does not answer. */
  call(call: Call<Json>): Promise<ToolAnswer>
}

/** Declares a tool. Its arguments are checked against `input` before each call. */
export function defineTool<Shape extends z.ZodObject>(tool: {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: Shape
  /** The main members of its data, by their types. */
  readonly output: z.ZodRawShape
  call(call: Call<z.output<Shape>>): Promise<ToolAnswer>
}): Tool {
  return {
    ...tool,
    input: toArguments(tool.input),
    output: toResultSchema(z.looseObject(tool.output)),
    call: (call) => tool.call(call as Call<z.output<Shape>>),
  }
}
