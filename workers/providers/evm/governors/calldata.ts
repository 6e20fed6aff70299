import type { AbiFunction, AbiParameter } from 'viem'
import { parseAbi, toFunctionSelector } from 'viem/utils'
import { toArgumentTexts } from './argument-text.ts'
import { type NamedFunction, parseCanonical } from './canonical-signature.ts'
import { type GovernorAction, toExecuted } from './text-bytes.ts'

/** Functions that proposals call: tokens, proxies, roles, timelocks, bridges, treasuries and the largest protocols. */
const KNOWN = parseAbi([
  'function transfer(address to, uint256 amount)',
  'function approve(address spender, uint256 amount)',
  'function transferFrom(address from, address to, uint256 amount)',
  'function safeTransferFrom(address from, address to, uint256 tokenId)',
  'function increaseAllowance(address spender, uint256 addedValue)',
  'function mint(address to, uint256 amount)',
  'function burn(uint256 amount)',
  'function delegate(address delegatee)',
  'function deposit()',
  'function deposit(uint256 amount)',
  'function deposit(uint256 assets, address receiver)',
  'function withdraw(uint256 amount)',
  'function withdraw(uint256 assets, address receiver, address owner)',
  'function redeem(uint256 shares, address receiver, address owner)',
  'function transferOwnership(address newOwner)',
  'function acceptOwnership()',
  'function renounceOwnership()',
  'function setOwner(address owner)',
  'function grantRole(bytes32 role, address account)',
  'function revokeRole(bytes32 role, address account)',
  'function renounceRole(bytes32 role, address account)',
  'function pause()',
  'function unpause()',
  'function upgradeTo(address implementation)',
  'function upgradeToAndCall(address implementation, bytes data)',
  'function upgrade(address proxy, address implementation)',
  'function upgradeAndCall(address proxy, address implementation, bytes data)',
  'function changeAdmin(address newAdmin)',
  'function setDelay(uint256 delay)',
  'function setPendingAdmin(address pendingAdmin)',
  'function acceptAdmin()',
  'function queueTransaction(address target, uint256 value, string signature, bytes data, uint256 eta)',
  'function executeTransaction(address target, uint256 value, string signature, bytes data, uint256 eta)',
  'function cancelTransaction(address target, uint256 value, string signature, bytes data, uint256 eta)',
  'function schedule(address target, uint256 value, bytes data, bytes32 predecessor, bytes32 salt, uint256 delay)',
  'function scheduleBatch(address[] targets, uint256[] values, bytes[] payloads, bytes32 predecessor, bytes32 salt, uint256 delay)',
  'function execute(address target, uint256 value, bytes data, bytes32 predecessor, bytes32 salt)',
  'function execute(address target, uint256 value, bytes data)',
  'function executeBatch(address[] targets, uint256[] values, bytes[] payloads, bytes32 predecessor, bytes32 salt)',
  'function updateDelay(uint256 newDelay)',
  'function relay(address target, uint256 value, bytes data)',
  'function multicall(bytes[] data)',
  'function setVotingDelay(uint256 newVotingDelay)',
  'function setVotingPeriod(uint256 newVotingPeriod)',
  'function setProposalThreshold(uint256 newProposalThreshold)',
  'function updateQuorumNumerator(uint256 newQuorumNumerator)',
  'function updateTimelock(address newTimelock)',
  'function _setImplementation(address implementation)',
  'function _setPendingAdmin(address newPendingAdmin)',
  'function _acceptAdmin()',
  'function _setVotingDelay(uint256 newVotingDelay)',
  'function _setVotingPeriod(uint256 newVotingPeriod)',
  'function _setProposalThreshold(uint256 newProposalThreshold)',
  'function _setWhitelistAccountExpiration(address account, uint256 expiration)',
  'function _setWhitelistGuardian(address account)',
  'function _supportMarket(address cToken)',
  'function _setCollateralFactor(address cToken, uint256 newCollateralFactorMantissa)',
  'function _setReserveFactor(uint256 newReserveFactorMantissa)',
  'function _setInterestRateModel(address newInterestRateModel)',
  'function _setCompSpeed(address cToken, uint256 compSpeed)',
  'function _setCompSpeeds(address[] cTokens, uint256[] supplySpeeds, uint256[] borrowSpeeds)',
  'function _grantComp(address recipient, uint256 amount)',
  'function _setPriceOracle(address newOracle)',
  'function _setBorrowPaused(address cToken, bool state)',
  'function _setMintPaused(address cToken, bool state)',
  'function _reduceReserves(uint256 reduceAmount)',
  'function _upgrade(address implementation)',
  'function deployAndUpgradeTo(address configuratorProxy, address cometProxy)',
  'function updateAssetSupplyCap(address cometProxy, address asset, uint128 newSupplyCap)',
  'function setBorrowKink(address cometProxy, uint64 newBorrowKink)',
  'function setSupplyKink(address cometProxy, uint64 newSupplyKink)',
  'function setRewardConfig(address comet, address token)',
  'function enableFeeAmount(uint24 fee, int24 tickSpacing)',
  'function setFeeProtocol(uint8 feeProtocol0, uint8 feeProtocol1)',
  'function setFeeTo(address feeTo)',
  'function setFeeToSetter(address feeToSetter)',
  'function setSubnodeRecord(bytes32 node, bytes32 label, address owner, address resolver, uint64 ttl)',
  'function setSubnodeOwner(bytes32 node, bytes32 label, address owner)',
  'function setText(bytes32 node, string key, string value)',
  'function setContenthash(bytes32 node, bytes hash)',
  'function setController(address controller)',
  'function addController(address controller)',
  'function createStream(address recipient, uint256 deposit, address tokenAddress, uint256 startTime, uint256 stopTime)',
  'function createStream(address recipient, uint256 tokenAmount, address tokenAddress, uint256 startTime, uint256 stopTime, uint256 nonce, address predictedStreamAddress)',
  'function cancelStream(uint256 streamId)',
  'function sendOrRegisterDebt(address account, uint256 amount)',
  'function sendETH(address recipient, uint256 amount)',
  'function sendERC20(address recipient, address token, uint256 amount)',
  'function sendMessage(address target, bytes message, uint32 gasLimit)',
  'function sendTxToL1(address destination, bytes data)',
  'function sendMessageToChild(address receiver, bytes data)',
  'function createRetryableTicket(address to, uint256 l2CallValue, uint256 maxSubmissionCost, address excessFeeRefundAddress, address callValueRefundAddress, uint256 gasLimit, uint256 maxFeePerGas, bytes data)',
  'function depositERC20To(address l1Token, address l2Token, address to, uint256 amount, uint32 l2Gas, bytes data)',
  'function outboundTransfer(address token, address to, uint256 amount, uint256 maxGas, uint256 gasPriceBid, bytes data)',
  'function perform()',
])

const knownBySelector: ReadonlyMap<string, AbiFunction> = new Map(KNOWN.map((one) => [toFunctionSelector(one), one]))

interface DecodedArgument {
  readonly name: string | null
  readonly type: string
  readonly value: string
}

/**
 * An action as it is stored. A call of no known function has neither function nor arguments; its signature is then the
 * text of the proposal as written, null if it has none.
 */
export interface DecodedAction {
  readonly target: string
  readonly value_wei: string
  readonly function: string | null
  readonly signature: string | null
  readonly arguments: DecodedArgument[]
  /** With its selector. */
  readonly calldata: string
}

/** Returns the function of a call, if the text of the proposal or a well-known selector names it without doubt. */
function findFunction(signature: string, selector: string): NamedFunction | undefined {
  const known = knownBySelector.get(selector)
  if (signature === '') return known
  const own = parseCanonical(signature)
  if (own === undefined || known === undefined) return own
  // Another text can have the selector of a known function, whose names of parameters then mislead.
  return toSignature(known) === signature ? known : undefined
}

const toSignature = ({ name, inputs }: NamedFunction) => `${name}(${inputs.map(toTypeName).join(',')})`
const toTypeName = (input: AbiParameter): string =>
  'components' in input
    ? `(${input.components.map(toTypeName).join(',')})${input.type.slice('tuple'.length)}`
    : input.type

/**
 * Decodes a call. With a signature, contracts hash its text as written and execute the function with that selector; the
 * calldata then has no selector of its own. So a text counts only in its canonical form. Without one, the calldata begins
 * with the selector, which is decoded if the function is well known.
 */
export function decodeAction(action: GovernorAction): DecodedAction {
  const { target, value, signature } = action
  const whole = toExecuted(action)
  const found = findFunction(signature, whole.slice(0, 10))
  const texts = found && toArgumentTexts(found.inputs, Buffer.from(whole.slice(2), 'hex'))
  const about = { target, value_wei: String(value), calldata: whole }
  if (found === undefined || texts === undefined)
    return { ...about, function: null, signature: signature === '' ? null : signature, arguments: [] }
  const decoded = found.inputs.map((input, at) => ({
    ...{ name: input.name || null, type: input.type, value: texts[at] ?? '' },
  }))
  return { ...about, function: found.name, signature: toSignature(found), arguments: decoded }
}
