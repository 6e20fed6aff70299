import { toStoresHint } from './config/config.ts'
import { DataError } from './errors.ts'
import { runProgram } from './process.ts'
import { toClickHouseCode } from './store/store.ts'

/**
 * Runs a command. If a store is unreachable and no setting names it, the error message explains how stores are found.
 */
export function runCommand(main: () => Promise<void>): void {
  runProgram(async () => {
    try {
      await main()
    } catch (error) {
      const isUnreachable = error instanceof DataError && error.code === 'storage' && error.cause !== undefined
      const hint = isUnreachable && toClickHouseCode(error) === undefined ? toStoresHint() : undefined
      throw isUnreachable && hint !== undefined
        ? new DataError(error.code, `${error.message}: ${hint}`, { cause: error })
        : error
    }
  })
}
