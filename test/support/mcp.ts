import { request } from 'node:http'
import {
  type CallToolResult,
  Client,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client'
import { DAY_MS } from '../../shared/intervals.ts'
import { getToken } from './entities.ts'
import type { Pipeline } from './pipeline.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * The result of a tool: its data, the same as text, the linked files, and the length of the longer form in characters.
 */
export interface ToolReply {
  readonly data: Json
  readonly text: string
  readonly files: readonly string[]
  readonly isError: boolean
  readonly length: number
}

export interface Assistant {
  readonly client: Client
  publish(tool: string, input?: Json): Promise<ToolReply>
  /** The rows of a tool's table, as records by column. */
  rows(tool: string, input: Json): Promise<Json[]>
  close(): Promise<void>
}

/** The number of content characters that a model reads. */
const toLength = (content: CallToolResult['content']) =>
  content.reduce((sum, one) => sum + (one.type === 'text' ? one.text : JSON.stringify(one)).length, 0)

function toToolResult(result: CallToolResult): ToolReply {
  const [content] = result.content
  return {
    data: (result.structuredContent ?? {}) as Json,
    text: content?.type === 'text' ? content.text : '',
    isError: result.isError === true,
    files: result.content.flatMap((one) => (one.type === 'resource_link' ? [one.uri] : [])),
    length: Math.max(toLength(result.content), JSON.stringify(result.structuredContent ?? {}).length),
  }
}

/** The records of a table. */
export function toRows({ columns, rows }: Json): Json[] {
  const names = columns as readonly string[]
  return (rows as readonly unknown[][]).map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])))
}

/** A client from the protocol's official SDK, as assistants use it. */
export async function connect(transport: Transport): Promise<Assistant> {
  const client = new Client({ name: 'dao-data-test', version: '1.0.0' })
  await client.connect(transport)
  const callTool = async (tool: string, input: Json = {}) =>
    toToolResult((await client.callTool({ name: tool, arguments: input })) as CallToolResult)
  return {
    client,
    publish: callTool,
    rows: async (tool, input) => {
      const { data, text, isError } = await callTool(tool, input)
      if (isError) throw new Error(text)
      return toRows(data)
    },
    close: () => client.close(),
  }
}

/** Connects to an API at a URL. */
export const connectTo = (url: string, headers: Readonly<Record<string, string>> = {}): Promise<Assistant> =>
  connect(new StreamableHTTPClientTransport(new URL('/mcp', url), { requestInit: { headers: { ...headers } } }))

interface Sent {
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  readonly path?: string | undefined
  readonly method?: string | undefined
}

/** Sends requests that regular clients cannot send, for example with a foreign host name. */
export function sendTo(url: string, { headers, body = '{}', path = '/mcp', method = 'POST' }: Sent) {
  return new Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> }>((resolve, reject) => {
    const { hostname, port } = new URL(url)
    // The path is sent unchanged, even if it is a complete URL.
    const sent = request({ hostname, port, path, method, headers: { 'Content-Type': 'application/json', ...headers } })
    sent.on('error', reject).on('response', async (response) => {
      const chunks = await response.toArray()
      resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString(), headers: response.headers })
    })
    sent.end(body)
  })
}

/** Stores two more days of a token's holders, so that tools can report changes. */
export async function storePastHolders({ database, registry }: Pipeline, symbol: string, today: number): Promise<void> {
  const token = getToken(registry, symbol).key
  const holders = [{ address: `0x${'1'.repeat(40)}`, amount: 5, amount_usd: null, share: 40 }]
  const rows = [1, 2].map((ago) => ({
    ...{ token, observed_at: new Date(today - ago * DAY_MS).toISOString(), total_holders: 1_000 - 10 * ago },
    ...{ top100_share: 40, holders },
  }))
  await database.db.insert({ table: 'token_holders', rows })
}
