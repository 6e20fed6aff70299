import type { paths } from '../../clients/typescript/src/schema.ts'

type Holdings = paths['/data/daos/treasury/holdings']['get']['responses'][200]['content']['application/json']

type Holding = Pick<
  Holdings[number],
  'symbol' | 'token' | 'contractAddress' | 'chain' | 'kind' | 'quantity' | 'valueUsd'
>

interface Asset {
  readonly key: string
  readonly symbol: string
  readonly token: string | null
  readonly kind: Holding['kind']
  readonly chain: string | null
  readonly quantity: number
  readonly valueUsd: number | null
}

/** Adds up the holdings of all addresses by asset and chain, largest value first. */
export function sumByAsset(holdings: readonly Holding[]): readonly Asset[] {
  const assets = new Map<string, Asset>()
  for (const { symbol, token, contractAddress, chain, kind, quantity, valueUsd } of holdings) {
    // Symbols are labels: the contract identifies an asset on its chain, if the source reports it.
    const key = JSON.stringify([chain, contractAddress, contractAddress === null ? symbol : ''])
    const before = assets.get(key)
    const value =
      before === undefined || before.valueUsd === null || valueUsd === null
        ? (before?.valueUsd ?? valueUsd)
        : before.valueUsd + valueUsd
    const sum = (before?.quantity ?? 0) + quantity
    assets.set(key, { key, symbol, token, kind, chain, quantity: sum, valueUsd: value })
  }
  return [...assets.values()].sort((a, b) => (b.valueUsd ?? -1) - (a.valueUsd ?? -1))
}

interface ChangedAsset extends Asset {
  /** Null if the earlier value is unknown. */
  readonly quantityChange: number | null
  readonly valueChange: number | null
}

/**
 * The assets with their changes since an earlier day. `before` is undefined if that day is not comparable. An asset that
 * is in one of the lists only was bought or sold: its other quantity is 0.
 */
export function compareAssets(now: readonly Asset[], before: readonly Asset[] | undefined): readonly ChangedAsset[] {
  const earlier = new Map(before?.map((asset) => [asset.key, asset]))
  const sold = (before ?? []).filter(({ key }) => !now.some((asset) => asset.key === key))
  const all = [...now, ...sold.map((asset) => ({ ...asset, quantity: 0, valueUsd: 0 }))]
  return all.map((asset) => {
    if (before === undefined) return { ...asset, quantityChange: null, valueChange: null }
    const past = earlier.get(asset.key)
    const pastValue = past === undefined ? 0 : past.valueUsd
    const valueChange = asset.valueUsd === null || pastValue === null ? null : asset.valueUsd - pastValue
    return { ...asset, quantityChange: asset.quantity - (past?.quantity ?? 0), valueChange }
  })
}
