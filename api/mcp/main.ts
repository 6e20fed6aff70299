import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { readCommandLine } from '../../shared/command-line.ts'
import { loadCommandConfig } from '../../shared/config/config.ts'
import { DataError, toReason } from '../../shared/errors.ts'
import { isMain, onStopSignal, runProgram } from '../../shared/process.ts'
import { createMcpServer } from './server.ts'
import { createRemoteSource } from './source.ts'

const HELP = `npm run mcp -- [--url http://127.0.0.1:3000] [--text]

Tools for an assistant over standard input and output (Model Context Protocol). They send requests to a running API, by
default that of the settings. With --text the data is in the text only, for clients that pass both text and structured
content to their model. MCP_API_KEY is the key for an API that limits requests.`

function toBase(url: string): string {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new DataError('config', `--url must be an http or https URL, not ${JSON.stringify(url)}`)
  return url.replace(/\/$/, '')
}

async function main(): Promise<void> {
  const { values } = readCommandLine({
    options: { url: { type: 'string' }, text: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  if (values.help) return void console.log(HELP)
  const { api, proxy } = loadCommandConfig()
  const source = createRemoteSource(toBase(values.url ?? api.publicUrl), { key: api.mcpKey, proxy })
  const dataIn = values.text ? 'text' : 'both'
  // Standard output belongs to the protocol.
  const onFailure = (error: unknown) => console.error(toReason(error))
  const server = serveStdio(() => createMcpServer(source, { dataIn, onFailure }), { onerror: onFailure })
  onStopSignal(() => server.close())
}

if (isMain(import.meta.url)) runProgram(main)
