/** Approximate facts of a token: the order of magnitude of its price in USD, its supply, and the start of its trade. */
export interface TokenFacts {
  readonly price: number
  readonly totalSupply: number
  /** Null if the supply is unlimited. */
  readonly maxSupply: number | null
  /** Its first day, if within the simulated time. */
  readonly launch?: string
}

/** Later tokens start here, so that all exist on the day of most tests. */
const LATEST = '2024-04-01'

const capped = (price: number, supply: number, launch?: string): TokenFacts => ({
  price,
  totalSupply: supply,
  maxSupply: supply,
  ...(launch === undefined ? {} : { launch }),
})

const open = (price: number, supply: number, launch?: string): TokenFacts => ({
  ...capped(price, supply, launch),
  maxSupply: null,
})

/** By symbol. Round figures of the years 2022 to 2025, which are realistic enough for the demo. */
export const TOKEN_FACTS: Readonly<Record<string, TokenFacts>> = {
  '1INCH': capped(0.4, 1.5e9),
  AAVE: capped(110, 16e6),
  ACX: capped(0.2, 1e9, '2022-11-28'),
  AERO: open(0.8, 1.5e9, '2023-08-31'),
  AEVO: capped(0.5, 1e9, '2024-03-13'),
  ALCX: open(20, 2.4e6),
  ALPHA: capped(0.1, 1e9),
  ANT: open(5, 43e6),
  APE: capped(2.5, 1e9, '2022-03-17'),
  API3: open(1.6, 140e6),
  ARB: capped(1, 1e10, '2023-03-23'),
  AST: capped(0.1, 5e8),
  AUDIO: open(0.2, 1.3e9),
  BADGER: capped(4, 21e6),
  BAL: capped(5, 96_150_704),
  BANK: capped(0.01, 1e9),
  BEAM: capped(0.015, 6.2e10, '2023-10-26'),
  BLUR: capped(0.3, 3e9, '2023-02-14'),
  BNT: open(0.6, 150e6),
  BOND: capped(4, 1e7),
  BTRFLY: capped(150, 4e5),
  BTRST: capped(0.7, 250e6),
  CAKE: capped(3, 45e7),
  COMP: capped(55, 1e7),
  COW: capped(0.25, 1e9, '2022-03-28'),
  CREAM: capped(15, 2.9e6),
  CRV: capped(0.7, 3_303_030_299),
  CTX: capped(3, 1e7),
  CVX: capped(4, 1e8),
  DAI: open(1, 5e9),
  DHT: capped(0.2, 1e8),
  DINERO: open(0.02, 1e9, LATEST),
  DODO: capped(0.13, 1e9),
  DYDX: capped(2, 1e9),
  ENS: capped(15, 1e8),
  ETH: open(2300, 120e6),
  ETHFI: capped(2.5, 1e9, '2024-03-18'),
  EUL: capped(4, 27_182_818),
  FARM: capped(35, 690_420),
  FLUID: capped(4, 1e8),
  FORTH: capped(4, 15e6),
  FRAX: capped(3, 1e8),
  FWB: capped(5, 1e6),
  FXS: capped(3, 1e8),
  GEAR: capped(0.01, 1e10, '2022-12-20'),
  GFI: capped(1, 114e6),
  GHST: open(1, 52e6),
  GMX: capped(35, 13_250_000),
  GNO: capped(170, 3e6),
  GNS: open(4, 35e6),
  GRT: open(0.15, 1.08e10),
  GTC: capped(1.2, 1e8),
  HEGIC: capped(0.02, 3.01e9),
  HFT: capped(0.3, 1e9, '2022-11-07'),
  HOP: capped(0.03, 1e9, '2022-06-09'),
  IDEX: capped(0.06, 1e9),
  IDLE: capped(0.3, 13e6),
  ILV: capped(70, 1e7),
  INDEX: capped(3, 1e7),
  INST: capped(4, 1e8),
  INV: open(40, 6e5),
  JOE: capped(0.35, 5e8),
  KNC: open(0.6, 2.4e8),
  KP3R: open(80, 4.5e5),
  LDO: capped(1.8, 1e9),
  LPT: open(12, 38e6),
  LQTY: capped(1.2, 1e8),
  LRC: capped(0.25, 1_374_513_896),
  MAGIC: capped(0.7, 347e6),
  MANA: open(0.5, 2.19e9),
  MKR: capped(1500, 1_005_577),
  MLN: open(20, 2.9e6),
  MORPHO: capped(1.6, 1e9, LATEST),
  MPL: capped(12, 1e7),
  MTA: capped(0.05, 1e8),
  NXM: open(50, 6.7e6),
  OCEAN: capped(0.45, 1.41e9),
  OGN: capped(0.13, 1e9),
  OP: open(1.6, 4_294_967_296, '2022-05-31'),
  PAL: capped(0.2, 5e7, '2022-04-25'),
  PENDLE: open(2.5, 281e6),
  PEOPLE: capped(0.03, 5.06e9),
  PERP: capped(0.8, 150e6),
  PNK: open(0.025, 764e6),
  QI: capped(0.012, 7.2e9),
  RAD: capped(1.7, 1e8),
  RARE: capped(0.15, 1e9),
  RARI: capped(2.5, 25e6),
  RBN: capped(0.4, 1e9),
  RDNT: capped(0.15, 1.5e9, '2022-07-25'),
  RGT: capped(10, 12.5e6),
  ROOK: capped(40, 1.27e6),
  RPL: open(25, 21e6),
  SAFE: capped(0.8, 1e9, LATEST),
  SAND: capped(0.5, 3e9),
  SKY: open(0.06, 2.35e10, LATEST),
  SNX: open(2.4, 330e6),
  SSV: open(20, 12e6),
  STG: capped(0.5, 1e9, '2022-03-17'),
  SUSHI: capped(1.2, 287e6),
  SYN: capped(0.6, 250e6),
  SYRUP: open(0.3, 1.2e9, LATEST),
  T: capped(0.03, 1e10, '2022-01-31'),
  TORN: capped(6, 1e7),
  TRB: open(50, 2.6e6),
  TRIBE: capped(0.3, 1e9),
  TRU: open(0.07, 1.3e9),
  UMA: open(2.5, 125e6),
  UNI: capped(7, 1e9),
  USDC: open(1, 4e10),
  USDT: open(1, 1e11),
  VELO: open(0.08, 2.4e9, '2022-06-01'),
  WELL: capped(0.03, 5e9, '2022-04-01'),
  WETH: open(2300, 3e6),
  XVS: capped(7, 3e7),
  YFI: capped(7000, 36_666),
  YGG: capped(0.4, 1e9),
  ZRO: capped(3.5, 1e9, LATEST),
  ZRX: capped(0.4, 1e9),
}

/** The value of a DAO without a token, or with an unknown one: a small DAO. */
const SMALL = 5e7

/** The value of all tokens of a symbol at their typical price, in USD. */
export function toWorth(symbol: string | undefined): number {
  const facts = TOKEN_FACTS[symbol ?? '']
  return facts === undefined ? SMALL : facts.price * facts.totalSupply
}

/** The supply of a token without facts. */
const UNKNOWN_SUPPLY = 1e8

export const toTotalSupply = (symbol: string | undefined): number =>
  TOKEN_FACTS[symbol ?? '']?.totalSupply ?? UNKNOWN_SUPPLY
