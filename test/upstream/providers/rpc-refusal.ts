/** A JSON-RPC error, sent with status 200 unless the host uses another one. */
export class RpcRefusal extends Error {
  readonly code: number
  readonly status: number

  constructor(code: number, message: string, status = 200) {
    super(message)
    this.code = code
    this.status = status
  }
}
