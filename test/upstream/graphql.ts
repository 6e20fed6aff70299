import {
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  valueFromASTUntyped,
  visit,
} from 'graphql'

/** A requested field of a query, with its variables resolved. */
export interface QueryField {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly fields: readonly QueryField[]
}

/** A query that a server rejects before reading data. */
export class GraphqlMistake extends Error {}

type Variables = Readonly<Record<string, unknown>>

/**
 * Parses a query document with one operation into nested fields with arguments. Rejects fragments, directives and
 * aliases, which the clients here never send.
 * @throws GraphqlMistake for an invalid document, and for a variable that is not declared or has no value.
 */
export function parseQuery(text: string, input: Variables): readonly QueryField[] {
  const [operation, ...rest] = parseDocument(text).definitions
  if (operation?.kind !== Kind.OPERATION_DEFINITION || rest.length > 0) {
    throw new GraphqlMistake('Must provide one operation.')
  }
  checkVariables(operation, input)
  return toFields(operation.selectionSet, input)
}

function parseDocument(text: string) {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    throw new GraphqlMistake(error.message)
  }
}

function checkVariables({ variableDefinitions, selectionSet }: OperationDefinitionNode, input: Variables): void {
  const declared = new Set(variableDefinitions?.map(({ variable }) => variable.name.value))
  visit(selectionSet, {
    Variable({ name: { value: name } }) {
      if (!declared.has(name)) throw new GraphqlMistake(`Variable "$${name}" is not defined.`)
      if (input[name] === undefined) throw new GraphqlMistake(`Variable "$${name}" of required type was not provided.`)
    },
  })
}

function toFields({ selections }: SelectionSetNode, variables: Variables): QueryField[] {
  return selections.map((field) => {
    if (field.kind !== Kind.FIELD || field.alias !== undefined || (field.directives?.length ?? 0) > 0) {
      throw new GraphqlMistake('Only fields without aliases and directives are known here.')
    }
    const args = field.arguments?.map(({ name, value }) => [name.value, valueFromASTUntyped(value, variables)]) ?? []
    const fields = field.selectionSet === undefined ? [] : toFields(field.selectionSet, variables)
    return { name: field.name.value, args: Object.fromEntries(args), fields }
  })
}
