import {
  indexComposition,
  indexElement,
  SELECT_INDEX_ELEMENTS,
  toElementParams,
} from '../../shared/datasets/index-compositions.ts'
import { indexPoint, indexPoints, selectIndexPoints } from '../../shared/datasets/index-points.ts'
import { indexToken, indexTokenRecord, selectIndexToken } from '../../shared/datasets/index-token.ts'
import type { Registry } from '../../shared/registry/registry.ts'
import { from, type Published, RANGE } from './define-published.ts'

const ofIndex = ({ index }: Registry) => ({ entities: [index.key] })

/** The datasets about the Index. */
export const indexFiles: readonly Published[] = [
  {
    name: 'index',
    description: 'The value of the Index in each slot. The same points as /data/index/historic.',
    of: indexPoints,
    extent: () => indexPoints.series,
    params: ofIndex,
    rows: () =>
      `SELECT index_key AS key, created_at, value_usd, toString(r.composition) AS composition FROM (${selectIndexPoints(RANGE)}) AS r`,
    columns: from(indexPoint, [
      ['created_at', 'createdAt'],
      ['value_usd', 'valueUsd'],
      ['composition', 'composition'],
    ]),
  },
  {
    name: 'index-elements',
    description:
      'The tokens of each composition of the Index with their quantities. The same elements as /data/index/compositions.',
    about: 'token',
    params: toElementParams,
    rows: () => `SELECT token AS key, composition, valid_from, valid_to, quantity FROM (${SELECT_INDEX_ELEMENTS})`,
    columns: [
      ...from(indexComposition, [
        ['composition', '_id'],
        ['valid_from', 'from'],
        ['valid_to', 'to'],
      ]),
      ...from(indexElement, [['quantity', 'quantity', 'tokens']]),
    ],
    order: ['valid_from'],
  },
  {
    name: 'index-token',
    description: 'The Index Token at each block that was read, as /data/index/token-data has the newest.',
    of: indexToken,
    extent: () => indexToken.series,
    params: ofIndex,
    rows: () => `SELECT index_key AS key, created_at, toDecimal128(r.value, 18) AS value, toDecimal128(r.total_supply, 18) AS total_supply, value_usd
FROM (${selectIndexToken(RANGE('created_at'))}) AS r`,
    columns: from(indexTokenRecord, [
      ['created_at', 'createdAt'],
      ['value', 'value', 'ETH'],
      ['total_supply', 'totalSupply', 'tokens'],
      ['value_usd', 'valueUsd'],
    ]),
  },
]
