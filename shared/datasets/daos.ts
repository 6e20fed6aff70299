import { z } from 'zod'
import { hasNoOwnValue, LINK_FIELDS } from '../registry/found-links.ts'
import { defineDataset } from './define-dataset.ts'

/** Providers of links, in order of precedence. */
export const LINK_SOURCES = ['coinmarketcap', 'defillama', 'coingecko'] as const
export type LinkSource = (typeof LINK_SOURCES)[number]

/** A DAO's link or logo according to one source. */
export const daoLinkRow = z.strictObject({
  dao: z.number().int().nonnegative(),
  field: z.enum(LINK_FIELDS),
  source: z.enum(LINK_SOURCES),
  value: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).max(2_000),
  observed_at: z.iso.datetime(),
})

export type DaoLinkRow = z.infer<typeof daoLinkRow>

/**
 * Applies proposed links to the records of the given DAOs, only to fields that the registry's files leave empty. Writes
 * only records with changed links, so that time and count of changes stay correct.
 */
const APPLY_LINKS = `
INSERT INTO daos (* EXCEPT(version))
SELECT * EXCEPT(version, dao, empty, wanted, differs)
  REPLACE(wanted AS links, now64(3, 'UTC') AS updated_at, changes + 1 AS changes)
FROM
(
  SELECT d.*, p.dao,
    arrayFilter(name -> name != '', [${LINK_FIELDS.map((field) => `if(isNull(d.${field}), '${field}', '')`).join(', ')}]) AS empty,
    mapSort(mapFilter((field, value) -> has(empty, field), p.proposed)) AS wanted,
    wanted != mapSort(d.links) AS differs
  FROM (SELECT * FROM daos FINAL WHERE has({entities: Array(UInt64)}, key)) AS d
  INNER JOIN
  (
    SELECT dao, CAST((groupArray(name), groupArray(believed)), 'Map(String, String)') AS proposed
    FROM
    (
      SELECT dao, toString(field) AS name, argMin(value, indexOf([${toList(LINK_SOURCES)}], toString(source))) AS believed
      FROM dao_links FINAL
      WHERE has({entities: Array(UInt64)}, dao)
      GROUP BY dao, field
    )
    GROUP BY dao
  ) AS p ON p.dao = d.key
)
WHERE differs`

/** DAO records: links proposed by providers where the registry has none. */
export const daoLinks = defineDataset({
  name: 'daos',
  title: 'DAO profiles',
  cadence: '1d',
  table: 'dao_links',
  row: daoLinkRow,
  entities: ({ daos }) => daos.filter((dao) => dao.live && LINK_FIELDS.some((field) => hasNoOwnValue(dao, field))),
  needsDaos: true,
  entity: 'dao',
  isCollected: true,
  keepsNewest: true,
  derive: [{ name: 'apply-dao-links', sql: APPLY_LINKS, isFull: false }],
  series: { table: 'dao_links', entity: 'dao', time: 'observed_at' },
})

function toList(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(', ')
}
