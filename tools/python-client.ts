import { join } from 'node:path'
import type { Operation, Parameter, Schema } from '../api/openapi/shape.ts'
import { TIME_FORMS } from '../api/parameters/time.ts'
import { document, groups, writeSource } from './client-sources.ts'
import { createPythonTypes, toPythonName } from './python-types.ts'

const SOURCES = join(import.meta.dirname, '../clients/python/src/dao_data_client')
const HEADER = 'Made of the OpenAPI document; not to be edited.'
/** The client sets these itself. */
const OWN = new Set(['format', 'bom', 'cursor', 'lastEventId', 'Last-Event-ID'])

const types = createPythonTypes(document)
const constantOf = (operation: string) => toPythonName(operation).toUpperCase()
const isText = (schema: Schema) => schema.type === 'string' && schema.enum === undefined

/** The type of one value of a parameter. */
function toValueType(schema: Schema, description: string): string {
  if (schema.enum?.join() === 'true,false') return 'bool'
  if (schema.enum !== undefined) return `Literal[${schema.enum.map((word) => JSON.stringify(word)).join(', ')}]`
  if (isText(schema)) return description.includes(TIME_FORMS) ? 'Time' : 'str'
  return schema.type === 'integer' ? 'int' : 'float'
}

/** The type of a parameter; a list may be one value. */
function toParameterType({ schema, description }: Parameter): string {
  const list = schema.items ?? schema.anyOf?.find(({ items }) => items !== undefined)?.items
  if (list === undefined) return toValueType(schema, description)
  const one = toValueType(list, description)
  return `Union[${one}, Sequence[${one}]]`
}

const parametersOf = ({ parameters }: Operation) => parameters.filter(({ name }) => !OWN.has(name))

/** The arguments of a method; `fill` is one of its two values, or any. */
function toArguments(operation: Operation, fill: 'without' | 'with' | 'any'): string {
  const given = parametersOf(operation).map((parameter) => {
    const name = toPythonName(parameter.name)
    if (parameter.name === 'fill' && fill === 'with') return `${name}: Literal["null"]`
    if (parameter.name === 'fill' && fill === 'without') return `${name}: None = None`
    const type = toParameterType(parameter)
    return parameter.required ? `${name}: ${type}` : `${name}: Optional[${type}] = None`
  })
  // Required ones come first.
  const sorted = [...given.filter((one) => !one.includes(' = ')), ...given.filter((one) => one.includes(' = '))]
  return sorted.length === 0 ? 'self' : `self, *, ${sorted.join(', ')}`
}

const toDocText = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('"""', "'''")

/** A paragraph of a method's documentation for each parameter. */
function toDoc(operation: Operation): string {
  const lines = parametersOf(operation).map(
    ({ name, description }) => `        ${toPythonName(name)}: ${toDocText(description)}`,
  )
  const about = [
    `${toDocText(operation.summary)}.`,
    '',
    `        ${toDocText(operation.description).replaceAll('\n', '\n        ')}`,
  ]
  return `        """${[...about, ...(lines.length === 0 ? [] : ['', ...lines])].join('\n')}\n        """`
}

const toValues = (operation: Operation) =>
  `{${parametersOf(operation)
    .map(({ name }) => `"${name}": ${toPythonName(name)}`)
    .join(', ')}}`

function toQueryType(operation: Operation, schema: Schema, filled: boolean): string {
  const isBytes = 'application/octet-stream' in operation.responses[200].content
  const { body, record } = types.bodyOf(operation.operationId, schema, filled)
  if (operation['x-formats'] === undefined) return `Query[${isBytes ? 'bytes' : body}]`
  return `TableQuery[${body}, ${record}]`
}

function toMethod(operation: Operation): string {
  const name = toPythonName(operation.operationId)
  const [media] = Object.values(operation.responses[200].content)
  if ('text/event-stream' in operation.responses[200].content) return toStream(operation)
  const schema = media?.schema ?? {}
  const kind = operation['x-formats'] === undefined ? 'Query' : 'TableQuery'
  const hasFill = operation.parameters.some((parameter) => parameter.name === 'fill') && types.hasFilled(schema)
  const overload = (filled: boolean) =>
    `    @overload\n    def ${name}(${toArguments(operation, filled ? 'with' : 'without')}) -> ${toQueryType(operation, schema, filled)}: ...\n\n`
  const result = hasFill ? `${kind}[Any, Any]` : toQueryType(operation, schema, false)
  const head = `    def ${name}(${toArguments(operation, 'any')}) -> ${result}:`
  const call = `        return ${kind}(self._connection, ${constantOf(operation.operationId)}, ${toValues(operation)})`
  return `${hasFill ? overload(false) + overload(true) : ''}${head}\n${toDoc(operation)}\n${call}`
}

/** The stream is an iteration, without an end. */
function toStream(operation: Operation): string {
  const given = `${toArguments(operation, 'any')}, last_event_id: Optional[str] = None, silence_seconds: float = 45.0`
  return `    def ${toPythonName(operation.operationId)}(${given}) -> Iterator[StreamEvent]:
${toDoc(operation).replace(
  /\n {8}"""$/,
  `
        last_event_id: The \`id\` of the last received event; the stream starts after it.
        silence_seconds: A connection without data for so long counts as broken; the service sends a heartbeat every 15 seconds.
        """`,
)}
        return follow_changes(
            self._connection,
            ${constantOf(operation.operationId)}.path,
            ${toValues(operation)},
            last_event_id=last_event_id,
            silence_seconds=silence_seconds,
        )`
}

/** The facts of an operation that the client needs at run time. */
function toConstant({ operationId, path, parameters, ...operation }: Operation & { path: string }): string {
  const limit = parameters.find(({ name }) => name === 'limit')?.schema
  const pageLimit = limit?.default === undefined ? 'None' : String(limit.maximum)
  const columns = (operation['x-columns'] ?? []).map(
    ({ name, type, nullable }) => `        ("${name}", "${type}", ${nullable ? 'True' : 'False'}),\n`,
  )
  const table = columns.length === 0 ? '()' : `(\n${columns.join('')}    )`
  return `${constantOf(operationId)} = Operation(\n    path="${path}",\n    page_limit=${pageLimit},\n    columns=${table},\n)`
}

const all = groups.flatMap(({ operations }) => operations)
const classes = groups.map(
  ({ name, description, operations }) => `class ${name[0]?.toUpperCase()}${name.slice(1)}:
    """${toDocText(description)}"""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

${operations.map(toMethod).join('\n\n')}`,
)
const members = groups.map(
  ({ name, description }) =>
    `        #: ${description}\n        self.${name} = ${name[0]?.toUpperCase()}${name.slice(1)}(connection)`,
)

const operations = `"""The operations of the service. ${HEADER}"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, Optional, Sequence, Union, overload

from .connection import Connection
from .query import Operation, Query, TableQuery
from .stream import StreamEvent, follow_changes

if TYPE_CHECKING:
    from .schema import *  # noqa: F403

#: A text in a form of the service, a date (its first moment in UTC), or an aware datetime.
Time = Union[str, datetime.date]

${all.map(toConstant).join('\n')}


${classes.join('\n\n\n')}


class Operations:
    """Every operation, in the groups of the service's reference."""

    def __init__(self, connection: Connection) -> None:
${members.join('\n')}
`
// The problem details are in the document, but in no answer of an operation.
types.bodyOf('problem', { $ref: '#/components/schemas/Problem' }, false)
const schema = `"""The types of answers. ${HEADER}"""

from __future__ import annotations

from typing import Dict, List, Literal, Optional, TypedDict, Union

${types.text()}
`
writeSource(join(SOURCES, 'operations.py'), operations)
writeSource(join(SOURCES, 'schema.py'), schema)
