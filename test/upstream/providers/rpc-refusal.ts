/** An error of the node's own: it travels with status 200. */
export class RpcRefusal extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}
