/** An error of the node's own: it travels with status 200 unless the host has another for it. */
export class RpcRefusal extends Error {
  readonly code: number
  readonly status: number

  constructor(code: number, message: string, status = 200) {
    super(message)
    this.code = code
    this.status = status
  }
}
