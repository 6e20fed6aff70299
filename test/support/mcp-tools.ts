import type { Tool } from '../../api/mcp/define-tool.ts'
import { Refused, type Reply, type Source } from '../../api/mcp/source.ts'
import { toOpenApi } from '../../api/openapi/document.ts'
import { routes } from '../../api/routes.ts'

const document = toOpenApi(routes)

/** The response of a source: records, an error to throw, or a complete reply. */
type Answered = readonly object[] | Refused | Reply

export const toReply = (records: readonly object[], headers: Record<string, string> = {}): Reply => ({
  text: records.map((record) => `${JSON.stringify(record)}\n`).join(''),
  headers: new Headers({ 'content-type': 'application/x-ndjson', ...headers }),
})

/** A source with responses from the test, and its received requests. */
export function createSource(answer: (url: URL) => Answered, now = 0): { source: Source; requestCount: URL[] } {
  const requests: URL[] = []
  const fetchRecords = async (path: string) => {
    const url = new URL(path, 'http://here')
    requests.push(url)
    const answered = answer(url)
    if (answered instanceof Refused) throw answered
    return 'text' in answered ? answered : toReply(answered)
  }
  return {
    source: { base: 'http://here', now: () => now, document: async () => document, request: fetchRecords },
    requestCount: requests,
  }
}

/** The validated arguments of a call. */
export function toInput({ input }: Tool, inputValue: unknown) {
  const { value, issues } = input['~standard'].validate(inputValue)
  if (value === undefined) throw new Error(issues?.map(({ path, message }) => `${path.join('.')}: ${message}`).join())
  return value
}

export const callTool = (tool: Tool, source: Source, inputValue: unknown) =>
  tool.call({ source, input: toInput(tool, inputValue), signal: new AbortController().signal })
