import type { RegistrationEvent } from '#sdk/registrations.ts'

export interface RegistrationMeter {
  counted(form: string, event: RegistrationEvent): void
}
