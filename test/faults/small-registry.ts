import type { Registry } from '../../shared/registry/registry.ts'
import { keepDaos } from '../support/few-daos.ts'

/** DAOs that have the data of each dataset: a space, treasuries, accounts, links that are empty in the files. */
const DAOS = new Set(['cream', 'sushi', 'yearn'])

export const loadSmallRegistry = (): Registry => keepDaos(DAOS)
