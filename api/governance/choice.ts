import { z } from 'zod'
import { columnTypes } from '../formats/formats.ts'

const TYPE = 'Variant(Array(Float64), Float64, Map(String, Float64), String)'

/** A voter's choice, in the form of the proposal's voting type. */
export const choiceValue = z
  .union([z.number(), z.array(z.number()), z.record(z.string(), z.number()), z.string()])
  .register(columnTypes, { type: TYPE })

const as = (sql: string) => `CAST(${sql}, '${TYPE}')`

/** Converts the stored JSON of a choice to the names of the choices, which `choices` lists from number 1 on. */
export function toChoiceText(json: string, choices: string): string {
  const nameOf = (number: string) =>
    `if(${number} BETWEEN 1 AND length(${choices}), ${choices}[greatest(${number}, 1)], toString(${number}))`
  return `multiIf(
    JSONType(${json}) IN ('Int64', 'UInt64'), ${nameOf(`JSONExtract(${json}, 'UInt32')`)},
    match(${json}, '^\\\\[[0-9,]+\\\\]$'), arrayStringConcat(arrayMap(number -> ${nameOf('number')}, JSONExtract(${json}, 'Array(UInt32)')), ', '),
    match(${json}, '^\\\\{("[0-9]+":[-+.eE0-9]+,?)+\\\\}$'),
      arrayStringConcat(arrayMap(pair -> concat(${nameOf('toUInt32OrZero(pair.1)')}, ' ', toString(pair.2)), JSONExtractKeysAndValues(${json}, 'Float64')), ', '),
    NULL)`
}

/** Converts the stored JSON of a choice to that value; JSON in no known form is returned as text. */
export const toChoice = (json: string): string => `multiIf(
    ${json} IN ('', 'null'), ${as('NULL')},
    JSONType(${json}) IN ('Int64', 'UInt64', 'Double'), ${as(`toFloat64OrZero(${json})`)},
    JSONType(${json}) = 'String', ${as(`JSONExtractString(${json})`)},
    match(${json}, '^\\\\[[-+.eE0-9,]*\\\\]$'), ${as(`JSONExtract(${json}, 'Array(Float64)')`)},
    match(${json}, '^\\\\{("[^"]*":[-+.eE0-9]+,?)*\\\\}$'), ${as(`JSONExtract(${json}, 'Map(String, Float64)')`)},
    ${as(json)})`
