import * as z from 'zod'
import type { InvitationRequest, RegisterRequest } from '#contract/register.ts'
import { maxFormAttributes } from '#modules/shared/forms/form-attribute.ts'

/** Values are bounded by the form's own rules, which tell people what is wrong. */
const requestMembers = {
  attributes: z
    .record(z.string(), z.string())
    .refine((given) => Object.keys(given).length <= maxFormAttributes, `has more than ${maxFormAttributes} members`)
    .describe('Attribute name to value'),
  reason: z.string().max(2_000).describe('Why; one of the reasons where there is a list').optional(),
  password: z.string().max(2_000).describe('Where a password is required').optional(),
  password2: z.string().max(2_000).describe('The same password again').optional(),
  reCaptchaCode: z.string().max(8_192).describe('What the human check gave').optional(),
  checkedTermsAndConditions: z.boolean().describe('Whether the terms were accepted').optional(),
  invitation: z.string().max(200).describe('The token of an invitation').optional(),
}

export const registerRequest = z.strictObject(requestMembers)

/** As it is read: clients of OpenUnison send two more members, which say nothing, and the honeypot may be there. */
export const readRequest = (honeypot: string | undefined) =>
  z.strictObject({
    ...requestMembers,
    extraData: z.unknown().optional(),
    enabledAttrs: z.unknown().optional(),
    ...(honeypot === undefined ? {} : { [honeypot]: z.string().max(8_192).optional() }),
  })

export type ReadRequest = z.infer<typeof registerRequest>

export const invitationRequest = z.strictObject({
  email: z.string().max(254),
  attributes: z.record(z.string(), z.string()).optional(),
})

/** The compiler says here where the schemas and the contract differ. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
export const contractHolds: readonly true[] = [
  true satisfies Same<keyof z.infer<typeof registerRequest>, keyof RegisterRequest>,
  true satisfies Same<keyof z.infer<typeof invitationRequest>, keyof InvitationRequest>,
]
