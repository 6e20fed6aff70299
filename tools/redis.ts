import { loadConfig } from '../shared/config/config.ts'
import { createPassword, readRedisAccess, redisDir, writeAccess } from '../shared/config/own-stores.ts'
import { DataError } from '../shared/errors.ts'
import { announceReady, onStopSignal, runProgram } from '../shared/process.ts'
import { type RedisServer, startRedis } from './redis-server.ts'

/**
 * The private Redis of a data folder, on the port from the command line. Stops when its parent exits. The password is
 * generated at the first start and stored in the folder.
 */
runProgram(async () => {
  const dir = redisDir(loadConfig().dataDir)
  const password = readRedisAccess(dir)?.password ?? createPassword()
  let isStopping = false
  let redis: RedisServer | undefined
  // Before the start, so that a stop signal during the start also stops the server.
  onStopSignal(async () => {
    isStopping = true
    await redis?.stop()
    writeAccess(dir, { password })
  })
  redis = await startRedis(dir, { port: Number(process.argv[2]), password })
  writeAccess(dir, { url: redis.url, password })
  announceReady({})
  await redis.ended
  if (!isStopping) throw new DataError('storage', `Redis over ${dir} ended unexpectedly`)
})
