import type { OpenApi } from '../openapi/shape.ts'
import { GUIDES } from './guides.ts'
import { byTag } from './reference.ts'

/** A description of the service for language models, in the format of llmstxt.org. */
export function toLlmsText(document: OpenApi, base: string): string {
  const guides = GUIDES.map(({ name, title }) => `- [${title}](${base}/guides/${name}.md)`)
  const tags = byTag(document).map(
    ({ name, description, operations }) =>
      `## ${name}\n\n${description}\n\n${operations
        .map(
          ({ path, operation: { operationId, summary } }) =>
            `- [GET ${path}](${base}/reference/${operationId}.md): ${summary}`,
        )
        .join('\n')}`,
  )
  return `# dao-data

> ${String(document.info.description).replaceAll('\n', ' ')}

- A token and the DAO that it belongs to are different records with different ids.
- An empty list means that nothing fits; \`not_found\` means that there is no such token or DAO.
- The Index is a basket of DAO tokens with a value. The Index Token is a token on a chain. They are not the same.
- Assistants ask by the Model Context Protocol as well: POST ${base}/mcp, see [the guide](${base}/guides/assistants.md).
- [The OpenAPI document](${base}/openapi.json) has every schema. [The reference](${base}/reference.md) is all operations on one page.

## Guides

${guides.join('\n')}

${tags.join('\n\n')}
`
}
