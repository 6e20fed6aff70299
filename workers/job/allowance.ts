/** How many pages a run may still ask for; shared by all its entities. */
export interface Allowance {
  isLeft(): boolean
  /** Takes one page; false when there is none left. */
  take(): boolean
}

export function createAllowance(pages: number): Allowance {
  let left = pages
  return {
    isLeft: () => left > 0,
    take() {
      left -= 1
      return left >= 0
    },
  }
}
