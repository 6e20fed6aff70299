import type { Governor } from '../../../../shared/registry/entities.ts'
import { aaveV2 } from './aave-v2.ts'
import { aaveV3 } from './aave-v3.ts'
import { agora } from './agora.ts'
import { alpha } from './alpha.ts'
import { aragon } from './aragon.ts'
import { bravo } from './bravo.ts'
import type { GovernorFamily } from './family.ts'
import { nouns } from './nouns.ts'
import { openzeppelin } from './openzeppelin.ts'
import { tornado } from './tornado.ts'
import { venus } from './venus.ts'

/** Every family, by its name in the registry. */
const FAMILIES = {
  ...{ alpha, bravo, openzeppelin, agora, nouns, venus, aragon, tornado },
  'aave-v2': aaveV2,
  'aave-v3': aaveV3,
} as const satisfies Readonly<Record<Governor['family'], GovernorFamily>>

export const familyOf = ({ family }: Pick<Governor, 'family'>): GovernorFamily => FAMILIES[family]

/** The first topics of all families. Nodes read contracts of several families in one call. */
export const GOVERNOR_TOPICS: readonly string[] = [...new Set(Object.values(FAMILIES).flatMap(({ topics }) => topics))]
