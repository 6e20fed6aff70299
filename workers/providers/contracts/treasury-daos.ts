import type { Dao } from '../../../shared/registry/entities.ts'
import type { Registry } from '../../../shared/registry/registry.ts'

/** An address whose holdings are the DAO's; `chainId` is the EIP-155 number, null where the chain has none. */
export interface Wallet {
  readonly chain: string
  readonly chainId: number | null
  readonly address: string
}

/** A DAO with what is needed to ask for its treasury. */
export interface TreasuryDao extends Dao {
  readonly wallets: readonly Wallet[]
}

/** The live DAOs whose treasury some provider can be asked for: by addresses or by DefiLlama's slug. */
export function toTreasuryDaos({ daos, chainBySlug }: Registry): TreasuryDao[] {
  return daos
    .filter(({ live }) => live)
    .map((dao) => {
      const known = dao.treasuries.filter(({ address }) => address !== '')
      const wallets = known.map(({ chain, address }) => ({
        chain,
        chainId: chainBySlug.get(chain)?.chainId ?? null,
        address,
      }))
      return { ...dao, wallets }
    })
    .filter(({ wallets, defillama }) => wallets.length > 0 || defillama !== null)
}
