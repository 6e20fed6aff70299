import { z } from 'zod'
import { columnTypes } from '../records/table.ts'

const TYPE = 'Variant(Array(Float64), Float64, Map(String, Float64), String)'

/** A voter's choice, in the form of the proposal's voting type. */
export const choiceValue = z
  .union([z.number(), z.array(z.number()), z.record(z.string(), z.number()), z.string()])
  .register(columnTypes, { type: TYPE })

const as = (sql: string) => `CAST(${sql}, '${TYPE}')`

/** Converts the stored JSON of a choice to that value; JSON in no known form is returned as text. */
export const toChoice = (json: string): string => `multiIf(
    ${json} IN ('', 'null'), ${as('NULL')},
    JSONType(${json}) IN ('Int64', 'UInt64', 'Double'), ${as(`toFloat64OrZero(${json})`)},
    JSONType(${json}) = 'String', ${as(`JSONExtractString(${json})`)},
    match(${json}, '^\\\\[[-+.eE0-9,]*\\\\]$'), ${as(`JSONExtract(${json}, 'Array(Float64)')`)},
    match(${json}, '^\\\\{("[^"]*":[-+.eE0-9]+,?)*\\\\}$'), ${as(`JSONExtract(${json}, 'Map(String, Float64)')`)},
    ${as(json)})`
