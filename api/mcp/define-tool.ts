import { z } from 'zod'
import { toArguments, toResultSchema } from './arguments.ts'
import type { Source } from './source.ts'
import type { Json } from './table.ts'

/** A file for data that is too large for an answer. */
export interface FileLink {
  readonly uri: string
  readonly name: string
  readonly mimeType: string
}

/** The result of a call: a one-sentence summary, the data, and files with the rest if it is too large. */
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

/** A tool with its own types hidden, so that one list can contain all tools. */
export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: ReturnType<typeof toArguments>
  readonly output: ReturnType<typeof toResultSchema>
  /** @throws Mistake for invalid arguments, Refused for requests that the API rejects. */
  call(call: Call<Json>): Promise<ToolAnswer>
}

/** Declares a tool. Its arguments are validated against `input` before each call. */
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
