import type { GatewayRequest } from '#sdk/http.ts'

/** Makes sure that a person registers. Whatever goes wrong on the way counts as a failure. */
export interface HumanCheck {
  /** `code` is what the page got from the check: not empty, and bounded in length. */
  passes(code: string, request: Pick<GatewayRequest, 'host' | 'remoteAddress'>): Promise<boolean>
  close(): void
}

export const noHumanCheck: HumanCheck = { passes: async () => true, close: () => {} }
