import { type DocumentedMember, toDocumentedMembers, toTypeName } from '../openapi/members.ts'
import type { OpenApi, Operation, Parameter } from '../openapi/shape.ts'
import { toCodeRows } from './guides.ts'
import { fromInlineMarkdown, fromMarkdown, toHtml } from './markdown.ts'
import { isStream, toFirstUrl, toSamples } from './samples.ts'
import type { LinkGroup } from './shell.ts'

const MOST_EXAMPLE_LINES = 60

const NO_PARAMETERS = 'It takes no parameters.'

const toCell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

function toParameterType({ required, schema }: Parameter): string {
  const notes = [required ? 'required' : '', schema.default === undefined ? '' : `default ${schema.default}`]
  return [toTypeName(schema), ...notes.filter((note) => note !== '')].join(', ')
}

const toParameterRow = (parameter: Parameter) =>
  `| \`${parameter.name}\` | ${toCell(toParameterType(parameter))} | ${toCell(parameter.description)} |`

/** The answer of an operation: type and example as Markdown. */
function describeAnswer(document: OpenApi, operation: Operation) {
  const [[mediaType, { schema, examples }] = ['', { schema: {} }]] = Object.entries(operation.responses[200].content)
  const formatNote = operation['x-formats'] !== undefined ? ' Other formats: see `format`.' : ''
  const lines = JSON.stringify(examples?.recorded.value ?? null, null, 2).split('\n')
  const shown = [...lines.slice(0, MOST_EXAMPLE_LINES), ...(lines.length > MOST_EXAMPLE_LINES ? ['…'] : [])].join('\n')
  return {
    about: `Answer: ${toTypeName(schema) === 'string' ? `\`${mediaType}\`` : toTypeName(schema)}.${formatNote}`,
    members: toDocumentedMembers(document, schema),
    example:
      examples === undefined
        ? undefined
        : `\`${examples.recorded.summary}\` of the demo, whose numbers are simulated:\n\n\`\`\`json\n${shown}\n\`\`\``,
  }
}

function toAnswer(document: OpenApi, operation: Operation): string {
  const { about, members, example } = describeAnswer(document, operation)
  const rows = members.map(
    ({ path, type, description }) => `| \`${path}\` | ${toCell(type)} | ${toCell(description)} |`,
  )
  return [
    about,
    rows.length === 0 ? '' : `| member | type | meaning |\n| --- | --- | --- |\n${rows.join('\n')}`,
    example === undefined ? '' : `Example: ${example}`,
  ].join('\n\n')
}

const toHeading = (path: string, operation: Operation) =>
  `\`GET ${path}\` · \`${operation.operationId}\`\n\n${operation.description}`

const toParameters = ({ parameters }: Operation) =>
  parameters.length === 0
    ? NO_PARAMETERS
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

/**
 * A form that sends the operation's request; the parameters of a first request are filled in. Its script enables it: a
 * browser alone would send empty parameters, and would not fill in the path.
 */
function toForm(path: string, operation: Operation): string {
  const { parameters, operationId } = operation
  const first = parameters.filter(({ example }) => example !== undefined)
  const more = parameters.filter(({ example }) => example === undefined)
  const rest =
    more.length === 0 ? '' : `<details><summary>More parameters</summary>${more.map(toInput).join('')}</details>`
  return `<form class="try" data-path="${toHtml(path)}" aria-label="Try ${operationId}">
${first.map(toInput).join('\n')}${rest}
<button disabled>Send</button>
<noscript><p>The form needs JavaScript. <a href="${toHtml(toFirstUrl(path, operation))}">Open an example answer</a></p></noscript>
<output aria-live="polite"></output>
</form>`
}

/** A parameter or a member. Type and meaning are Markdown. */
interface Entry {
  readonly name: string
  readonly type: string
  readonly description: string
}

const toList = (entries: readonly Entry[]) =>
  `<dl class="members">
${entries.map(({ name, type, description }) => `<dt><code>${toHtml(name)}</code> ${fromInlineMarkdown(type)}</dt>\n<dd>${fromInlineMarkdown(description)}</dd>`).join('\n')}
</dl>`

/** Of longer lists a part is closed at first: members of an object, and parameters that most operations have. */
const MOST_LISTED = 18

const COMMON = new Set(['sort', 'filter', 'limit', 'cursor', 'fields', 'format', 'bom'])

const toDetails = (title: string, entries: readonly Entry[]) =>
  `<details><summary>${title}</summary>\n${toList(entries)}\n</details>`

function toParametersHtml(parameters: readonly Parameter[]): string {
  const entries = parameters.map((parameter) => ({ ...parameter, type: toParameterType(parameter) }))
  if (entries.length === 0) return `<p>${NO_PARAMETERS}</p>`
  if (entries.length <= MOST_LISTED) return toList(entries)
  const [own, common] = [false, true].map((isCommon) => entries.filter(({ name }) => COMMON.has(name) === isCommon))
  return `${toList(own ?? [])}\n${toDetails('Order, filters and format', common ?? [])}`
}

function toMembersHtml(members: readonly DocumentedMember[]): string {
  const entries = members.map(({ path, ...member }) => ({ name: path, ...member }))
  if (entries.length <= MOST_LISTED) return toList(entries)
  const outer = entries.filter(({ name }) => !/[.[]/.test(name))
  const objects = outer.map(({ name }) => ({ name, within: entries.filter((entry) => isWithin(entry.name, name)) }))
  const details = objects
    .filter(({ within }) => within.length > 0)
    .map(({ name, within }) => toDetails(`<code>${toHtml(name)}</code>: ${within.length} members`, within))
  return [toList(outer), ...details].join('\n')
}

const isWithin = (path: string, name: string) => path.startsWith(`${name}.`) || path.startsWith(`${name}[`)

function toAnswerHtml(document: OpenApi, operation: Operation): string {
  const { about, members, example } = describeAnswer(document, operation)
  return [
    fromMarkdown(about),
    members.length === 0 ? '' : toMembersHtml(members),
    example === undefined ? '' : `<h2>Example</h2>\n${fromMarkdown(example)}`,
  ].join('\n')
}

/** One operation as the body of its page. */
export function toOperationHtml(document: OpenApi, base: string, path: string, operation: Operation): string {
  const tag = operation.tags[0] ?? ''
  const samples = toSamples(base, path, operation).map(
    ({ name, code }) =>
      `<details><summary>${name}</summary><pre tabindex="0"><code>${toHtml(code)}</code></pre></details>`,
  )
  return `<p class="trail"><a href="/reference">Reference</a> / <a href="/reference#${tag.toLowerCase()}">${toHtml(tag)}</a></p>
<h1>${toHtml(operation.summary)}</h1>
${fromMarkdown(toHeading(path, operation))}
${isStream(operation) ? '' : toForm(path, operation)}
${samples.join('\n')}
<h2>Parameters</h2>
${toParametersHtml(operation.parameters)}
<h2>Answer</h2>
${toAnswerHtml(document, operation)}`
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

const toReferencePath = ({ operationId }: Operation) => `/reference/${operationId}`

/** Links to the pages of all operations, by tag. */
export const toOperationLinks = (document: OpenApi): LinkGroup[] =>
  byTag(document).map(({ name, operations }) => ({
    title: name,
    links: operations.map(({ operation }) => ({ href: toReferencePath(operation), text: operation.summary })),
  }))

/** All operations as the page's search lists them. */
export const toOperationList = (document: OpenApi) =>
  byTag(document).flatMap(({ operations }) =>
    operations.map(({ path, operation: { operationId, summary } }) => ({ operationId, path, summary })),
  )

/** The overview of all operations as the body of a page. */
export function toOverviewHtml(document: OpenApi): string {
  const sections = byTag(document).map(
    ({ name, description, operations }) =>
      `<h2 id="${name.toLowerCase()}">${name}</h2>
<p>${toHtml(description)}</p>
<ul class="operations">
${operations.map(({ path, operation }) => `<li id="${operation.operationId}"><a href="${toReferencePath(operation)}">${toHtml(operation.summary)}</a> <code>${toHtml(path)}</code></li>`).join('\n')}
</ul>`,
  )
  return [
    fromMarkdown(INTRODUCTION(document)),
    ...sections,
    '<h2>Errors</h2>\n<p>Any operation can fail with one of <a href="/docs/errors">the error codes</a>.</p>',
  ].join('\n')
}
