/** `begun`, `signed-in`, `refused`, `failed` (a try), `locked` (a try that was not looked at), `signed-out`, `ended` (for want of its owner). */
export interface LoginMeter {
  counted(chain: string, outcome: string): void
}

export const noLoginMeter: LoginMeter = { counted: () => {} }
