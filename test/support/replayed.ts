import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import {
  FACTS_FILE,
  type RecordedAnswer,
  recordedAnswer,
  recordingFacts,
  toPath,
} from '../../workers/probe/recording.ts'

/** A server with recorded responses of several providers; the first part of the path selects the provider. */
export interface Replayed {
  /** Time of the recording, in Unix milliseconds. */
  readonly now: number
  readonly url: string
  /** Requests that are not in the recording. */
  readonly unknown: string[]
  close(): Promise<void>
}

const toQuestion = ({ method, path, sent }: Pick<RecordedAnswer, 'method' | 'path' | 'sent'>) =>
  `${method} ${path} ${sent === undefined ? '' : JSON.stringify(sent)}`

/** Serves a folder of recorded responses. Equal requests get the recorded responses in their order. */
export async function createReplayed(folder: string): Promise<Replayed> {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(folder, file), 'utf8'))
  const { now } = recordingFacts.parse(read(FACTS_FILE))
  const answers = new Map<string, RecordedAnswer[]>()
  const files = readdirSync(folder).filter((file) => file.endsWith('.json') && file !== FACTS_FILE)
  for (const file of files.sort((a, b) => toNumber(a) - toNumber(b))) {
    const answer = recordedAnswer.parse(read(file))
    const question = toQuestion(answer)
    answers.set(question, [...(answers.get(question) ?? []), answer])
  }
  const unknown: string[] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const question = toQuestion({
      method: request.method === 'POST' ? 'POST' : 'GET',
      path: toPath(`http://replayed${request.url}`),
      sent: body === '' ? undefined : JSON.parse(body),
    })
    const remaining = answers.get(question) ?? []
    const answer = remaining.length > 1 ? remaining.shift() : remaining[0]
    if (answer === undefined) unknown.push(question)
    response.writeHead(answer?.status ?? 404, { 'content-type': answer?.contentType ?? 'text/plain' })
    response.end(answer?.body ?? 'this was not recorded')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    now,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    unknown,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()))
        // Clients that did not read a response to its end keep their connections open.
        server.closeAllConnections()
      }),
  }
}

const toNumber = (file: string) => Number(/-(\d+)\.json$/.exec(file)?.[1])
