import type { z } from 'zod'
import type { Source } from './source.ts'
import type { Json } from './table.ts'

/** What a tool answers with: the data once, and what it is in a line. */
export interface Told {
  readonly line: string
  readonly data: Json
}

export interface Call<Input> {
  readonly source: Source
  readonly input: Input
  readonly signal: AbortSignal
}

/** A tool with its own types closed over, so that one list can hold all of them. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly input: z.ZodObject
  /** @throws Mistake for arguments that mean nothing, Refused for what the interface does not answer. */
  call(call: Call<Json>): Promise<Told>
}

/** Declares a tool; what it is called with has been checked against `input`. */
export function defineTool<Shape extends z.ZodObject>(tool: {
  readonly name: string
  readonly description: string
  readonly input: Shape
  call(call: Call<z.output<Shape>>): Promise<Told>
}): Tool {
  return { ...tool, call: (call) => tool.call(call as Call<z.output<Shape>>) }
}
