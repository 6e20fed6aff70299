import { daoTreasury, hasAddress } from '../../../shared/datasets/treasury.ts'
import type { Dao } from '../../../shared/registry/entities.ts'
import type { Registry } from '../../../shared/registry/registry.ts'
import { createKinds, type KindOf } from '../asset-kinds.ts'

/** An address of the DAO's treasury. `chainId` is the EIP-155 number, null if the chain has none. */
export interface Wallet {
  readonly chain: string
  readonly chainId: number | null
  readonly address: string
}

/** A DAO with the facts needed to request its treasury. */
export interface TreasuryDao extends Dao {
  readonly wallets: readonly Wallet[]
  readonly kindOf: KindOf
}

/** Returns the live DAOs whose treasury a provider can serve: by addresses or by DefiLlama's slug. */
export function toTreasuryDaos(registry: Registry): TreasuryDao[] {
  const kindsOf = createKinds(registry)
  return daoTreasury.entities(registry).map((dao) => {
    const wallets = dao.treasuries.filter(hasAddress).map(({ chain, address }) => ({
      chain,
      chainId: registry.chainBySlug.get(chain)?.chainId ?? null,
      address,
    }))
    return { ...dao, wallets, kindOf: kindsOf(dao) }
  })
}
