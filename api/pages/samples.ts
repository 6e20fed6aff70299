import type { Operation } from '../openapi/shape.ts'

/** The path and query of a first request that succeeds. */
export function toFirstUrl(path: string, { parameters }: Operation): string {
  const tried = parameters.filter(({ example }) => example !== undefined)
  const inPath = tried.filter((parameter) => parameter.in === 'path')
  const filled = inPath.reduce((url, { name, example }) => url.replace(`{${name}}`, String(example)), path)
  const query = tried
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, example }) => `${name}=${encodeURIComponent(String(example))}`)
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`
}

const isTable = ({ parameters }: Operation) => parameters.some(({ name }) => name === 'format')
const withFormat = (url: string, format: string) => `${url}${url.includes('?') ? '&' : '?'}format=${format}`

const isJson = ({ responses }: Operation) => Object.keys(responses[200].content).some((type) => type.includes('json'))

function toPython(url: string, operation: Operation): string {
  if (!isTable(operation)) {
    const read = isJson(operation) ? 'json()' : 'text'
    return `import requests\n\nanswer = requests.get("${url}")\nanswer.raise_for_status()\nprint(answer.${read})`
  }
  return `import pandas as pd\n\nframe = pd.read_csv("${withFormat(url, 'csv')}")\nprint(frame.head())`
}

function toDuckDb(url: string, operation: Operation) {
  if (!isTable(operation)) return []
  const code = `SELECT * FROM read_csv('${withFormat(url, 'csv')}');`
  return [{ name: 'DuckDB', language: 'sql', code }]
}

/** Whether its answer has no end. */
export const isStream = ({ responses }: Operation): boolean => 'text/event-stream' in responses[200].content

const toFollowing = (url: string) =>
  `const events = new EventSource('${url}')\nevents.addEventListener('change', ({ data }) => console.log(JSON.parse(data)))\nevents.addEventListener('reset', () => location.reload())`

/** The same request in the most common languages. */
export function toSamples(base: string, path: string, operation: Operation) {
  const url = base + toFirstUrl(path, operation)
  if (path.endsWith('.svg'))
    return [
      { name: 'curl', language: 'sh', code: `curl -O '${url}'` },
      { name: 'HTML', language: 'html', code: `<img src="${url}" alt="">` },
    ]
  if (isStream(operation))
    return [
      { name: 'curl', language: 'sh', code: `curl -N '${url}'` },
      { name: 'JavaScript', language: 'js', code: toFollowing(url) },
    ]
  return [
    { name: 'curl', language: 'sh', code: `curl '${url}'` },
    {
      name: 'TypeScript',
      language: 'ts',
      code: `const response = await fetch('${url}')\nif (!response.ok) throw new Error((await response.json()).detail)\nconsole.log(await response.${isJson(operation) ? 'json' : 'text'}())`,
    },
    { name: 'Python', language: 'python', code: toPython(url, operation) },
    ...toDuckDb(url, operation),
  ]
}
