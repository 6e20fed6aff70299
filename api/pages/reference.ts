import { toDocumentedMembers, toTypeName } from '../openapi/members.ts'
import type { OpenApi, Operation, Parameter } from '../openapi/shape.ts'
import { toCodeRows } from './guides.ts'
import { fromMarkdown, toHtml } from './markdown.ts'
import { isStream, toSamples } from './samples.ts'
import type { LinkGroup } from './shell.ts'

const MOST_EXAMPLE_LINES = 60

const toCell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

function toParameterRow({ name, required, schema, description }: Parameter): string {
  const notes = [required ? 'required' : '', schema.default === undefined ? '' : `default ${schema.default}`]
  const said = [toTypeName(schema), ...notes.filter((note) => note !== '')].join(', ')
  return `| \`${name}\` | ${toCell(said)} | ${toCell(description)} |`
}

function toAnswer(document: OpenApi, operation: Operation): string {
  const [[mediaType, { schema, examples }] = ['', { schema: {} }]] = Object.entries(operation.responses[200].content)
  const formatNote = operation['x-formats'] !== undefined ? ' Other formats: see `format`.' : ''
  const members = toDocumentedMembers(document, schema).map(
    ({ path, type, description }) => `| \`${path}\` | ${toCell(type)} | ${toCell(description)} |`,
  )
  const lines = JSON.stringify(examples?.recorded.value ?? null, null, 2).split('\n')
  const shown = [...lines.slice(0, MOST_EXAMPLE_LINES), ...(lines.length > MOST_EXAMPLE_LINES ? ['…'] : [])].join('\n')
  return [
    `Answer: ${toTypeName(schema) === 'string' ? `\`${mediaType}\`` : toTypeName(schema)}.${formatNote}`,
    members.length === 0 ? '' : `| member | type | meaning |\n| --- | --- | --- |\n${members.join('\n')}`,
    examples === undefined
      ? ''
      : `Example: \`${examples.recorded.summary}\` of the demo, whose numbers are simulated.\n\n\`\`\`json\n${shown}\n\`\`\``,
  ].join('\n\n')
}

const toHeading = (path: string, operation: Operation) =>
  `\`GET ${path}\` · \`${operation.operationId}\`\n\n${operation.description}`

const toParameters = ({ parameters }: Operation) =>
  parameters.length === 0
    ? 'It takes no parameters.'
    : `| parameter | type | meaning |\n| --- | --- | --- |\n${parameters.map(toParameterRow).join('\n')}`

/** One operation as Markdown. */
export function toOperationMarkdown(document: OpenApi, base: string, path: string, operation: Operation): string {
  const samples = toSamples(base, path, operation).map(({ language, code }) => `\`\`\`${language}\n${code}\n\`\`\``)
  const parts = [toHeading(path, operation), ...samples, toParameters(operation), toAnswer(document, operation)]
  return `### ${operation.summary}\n\n${parts.join('\n\n')}\n`
}

function toInput({ name, required, schema, example }: Parameter): string {
  const words = schema.enum ?? []
  const value = example === undefined ? '' : toHtml(String(example))
  const placeholder = schema.examples === undefined ? '' : ` placeholder="${toHtml(String(schema.examples[0]))}"`
  const options = ['', ...words].map(
    (word) => `<option${String(word) === String(example) ? ' selected' : ''}>${toHtml(String(word))}</option>`,
  )
  const input =
    words.length > 0
      ? `<select name="${name}"${required ? ' required' : ''}>${options.join('')}</select>`
      : `<input name="${name}" value="${value}"${placeholder}${required ? ' required' : ''} autocomplete="off">`
  return `<label><code>${name}</code>${input}</label>`
}

/** A form that sends the operation's request; the parameters of a first request are filled in. */
function toForm(path: string, { parameters, operationId }: Operation): string {
  const first = parameters.filter(({ example }) => example !== undefined)
  const more = parameters.filter(({ example }) => example === undefined)
  const rest =
    more.length === 0 ? '' : `<details><summary>More parameters</summary>${more.map(toInput).join('')}</details>`
  return `<form class="try" action="${toHtml(path)}" data-path="${toHtml(path)}" aria-label="Try ${operationId}">
${first.map(toInput).join('\n')}${rest}
<button>Send</button>
<output aria-live="polite"></output>
</form>`
}

function toOperationHtml(document: OpenApi, base: string, path: string, operation: Operation): string {
  const samples = toSamples(base, path, operation).map(
    ({ name, code }) =>
      `<details><summary>${name}</summary><pre tabindex="0"><code>${toHtml(code)}</code></pre></details>`,
  )
  return `<section class="operation" id="${operation.operationId}">
<h3><a href="#${operation.operationId}">${toHtml(operation.summary)}</a></h3>
${fromMarkdown(toHeading(path, operation))}
${isStream(operation) ? '' : toForm(path, operation)}
${samples.join('\n')}
${fromMarkdown(`${toParameters(operation)}\n\n${toAnswer(document, operation)}`)}
</section>`
}

/** The operations of a document by tag. */
export const byTag = (document: OpenApi) =>
  document.tags.map((tag) => ({
    ...tag,
    operations: Object.entries(document.paths)
      .map(([path, { get }]) => ({ path, operation: get }))
      .filter(({ operation }) => operation.tags.includes(tag.name)),
  }))

const INTRODUCTION = (document: OpenApi) => `# Reference

${document.info.description}

The guides beside this page say how to [begin](/guides/first-request), to [load tables](/guides/formats) and to [page](/guides/paging).
`

const ERRORS = () => `## Errors

Any operation can fail with these, as \`application/problem+json\`; see [the guide](/guides/errors).

| code | status | meaning |
| --- | --- | --- |
${toCodeRows()}
`

/** The whole reference as Markdown. */
export const toReferenceMarkdown = (document: OpenApi, base: string): string =>
  [
    INTRODUCTION(document),
    ...byTag(document).flatMap(({ name, description, operations }) => [
      `## ${name}\n\n${description}\n`,
      ...operations.map(({ path, operation }) => toOperationMarkdown(document, base, path, operation)),
    ]),
    ERRORS(),
  ].join('\n')

/** The reference as the body of a page, and the links to its operations. */
export function toReference(document: OpenApi, base: string): { body: string; groups: LinkGroup[] } {
  const tags = byTag(document)
  const sections = tags.map(
    ({ name, description, operations }) =>
      `<h2 id="${name.toLowerCase()}">${name}</h2>\n<p>${toHtml(description)}</p>\n${operations.map(({ path, operation }) => toOperationHtml(document, base, path, operation)).join('\n')}`,
  )
  const groups = tags.map(({ name, operations }) => ({
    title: name,
    links: operations.map(({ operation }) => ({
      href: `/reference#${operation.operationId}`,
      text: operation.summary,
    })),
  }))
  return { body: [fromMarkdown(INTRODUCTION(document)), ...sections, fromMarkdown(ERRORS())].join('\n'), groups }
}
