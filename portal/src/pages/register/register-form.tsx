import { Alert, Checkbox, List, NativeSelect, Paper, SimpleGrid, Stack, Text, Textarea } from '@mantine/core'
import { type FormEvent, useId } from 'react'
import type { RegisterConfig, SubmittedResponse } from '#features/registration/contract/register.ts'
import { ApiError } from '../../api/call.ts'
import { useTranslation } from '../../app/i18n.tsx'
import { Icon } from '../../components/icon.tsx'
import { PasswordFields } from '../../components/password-fields.tsx'
import { Failure } from '../../components/states.tsx'
import { SubmitButton } from '../../components/submit-button.tsx'
import { type Invitation, invitedValue, keyOf } from './entries.ts'
import { RegisterField } from './field.tsx'
import { ProviderCheck } from './provider-check.tsx'
import { isProvider } from './provider-script.ts'
import { type Registration, useRegistration } from './registration.ts'

interface RegisterFormProps {
  readonly config: RegisterConfig
  readonly owner: string
  readonly invitation: Invitation | undefined
  readonly onSubmitted: (answer: SubmittedResponse, address: string) => void
}

const maxReason = 2_000

export function RegisterForm(props: RegisterFormProps) {
  const { config } = props
  const { t } = useTranslation()
  const form = useRegistration(props)
  const prefix = useId()
  const idOf = (key: string): string => `${prefix} ${key}`.replaceAll(/[^\w-]/g, '-')
  const { humanCheck, passwordRules } = config
  const { kind } = humanCheck

  const send = (event: FormEvent): void => {
    event.preventDefault()
    if (form.submit.isPending) return
    const wrong = form.send()
    if (wrong !== undefined) document.getElementById(idOf(wrong))?.focus()
  }
  return (
    <form onSubmit={send} noValidate>
      <Stack>
        <Fields config={config} invitation={props.invitation} form={form} idOf={idOf} />
        {passwordRules !== undefined && (
          <PasswordFields
            ids={[idOf(keyOf('password')), idOf(keyOf('password2'))]}
            label={t('register.password')}
            rules={passwordRules}
            {...{ password: form.passwords.password, repeated: form.passwords.password2 }}
            userValues={Object.values(form.entries.values)}
            onPassword={form.setPassword}
            onRepeated={form.setRepeated}
            onBlur={(which) => form.leave(keyOf(which))}
            error={form.errorAt(keyOf('password'))}
            repeatedError={form.errorAt(keyOf('password2'))}
          />
        )}
        <Reason config={config} form={form} id={idOf(keyOf('reason'))} />
        {humanCheck.honeypot !== undefined && <Honeypot name={humanCheck.honeypot} form={form} />}
        {config.requireTermsAndConditions && (
          <Terms
            id={idOf(keyOf('terms'))}
            text={config.termsAndConditionsText ?? ''}
            checked={form.entries.terms}
            onChange={form.setTerms}
            error={form.errorAt(keyOf('terms'))}
          />
        )}
        {form.hasBox && isProvider(kind) && (
          <ProviderCheck kind={kind} check={humanCheck} onToken={form.setToken} error={form.boxError} />
        )}
        <Refusal error={form.submit.error} />
        <div>
          <SubmitButton loading={form.submit.isPending}>{config.submitButtonText}</SubmitButton>
          {form.submit.isPending && kind === 'proof-of-work' && (
            <Text size="sm" c="dimmed" mt="xs" role="status">
              {t('register.working')}
            </Text>
          )}
        </div>
      </Stack>
    </form>
  )
}

interface FieldsProps {
  readonly config: RegisterConfig
  readonly invitation: Invitation | undefined
  readonly form: Registration
  readonly idOf: (key: string) => string
}

function Fields({ config, invitation, form, idOf }: FieldsProps) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, ...(config.enableThirdColumn ? { lg: 3 } : {}) }}>
      {form.fields.map((field) => {
        const key = keyOf('field', field.name)
        const isAddress = field.name === config.verifyEmailAttribute
        return (
          <RegisterField
            key={field.name}
            field={field}
            id={idOf(key)}
            label={field.displayName}
            required={field.required || isAddress}
            isAddress={isAddress}
            minSearchChars={config.minSearchChars}
            value={invitedValue(config, field.name, invitation) ?? form.entries.values[field.name] ?? ''}
            onChange={(value) => form.setValue(field.name, value)}
            onBlur={() => form.leave(key)}
            error={form.errorAt(key)}
          />
        )
      })}
    </SimpleGrid>
  )
}

interface ReasonProps {
  readonly config: RegisterConfig
  readonly form: Registration
  readonly id: string
}

/** A list, a text, or nothing. */
function Reason({ config, form, id }: ReasonProps) {
  const { t } = useTranslation()
  const { reasonIsList, reasons, requireReason } = config
  const common = {
    id,
    label: t('register.reason'),
    required: requireReason,
    value: form.entries.reason,
    onBlur: () => form.leave(keyOf('reason')),
    error: form.errorAt(keyOf('reason')),
  }
  if (reasonIsList) {
    return (
      <NativeSelect
        {...common}
        onChange={(event) => form.setReason(event.currentTarget.value)}
        data={[{ value: '', label: t('register.choose') }, ...reasons]}
      />
    )
  }
  if (!requireReason) return null
  return (
    <Textarea
      {...common}
      onChange={(event) => form.setReason(event.currentTarget.value)}
      autosize
      minRows={2}
      maxRows={8}
      maxLength={maxReason}
    />
  )
}

/** A field that people do not see, and programs fill in. */
function Honeypot({ name, form }: { readonly name: string; readonly form: Registration }) {
  return (
    <div className="off-screen" aria-hidden="true">
      <label>
        {name}
        <input
          name={name}
          tabIndex={-1}
          autoComplete="off"
          value={form.trap}
          onChange={(event) => form.setTrap(event.currentTarget.value)}
        />
      </label>
    </div>
  )
}

interface TermsProps {
  readonly id: string
  readonly text: string
  readonly checked: boolean
  readonly onChange: (checked: boolean) => void
  readonly error: string | undefined
}

function Terms({ id, text, checked, onChange, error }: TermsProps) {
  const { t } = useTranslation()
  return (
    <Stack gap="xs">
      <Paper withBorder p="sm" className="terms" tabIndex={0} role="region" aria-label={t('register.terms')}>
        <Text className="preline" size="sm">
          {text}
        </Text>
      </Paper>
      <Checkbox
        id={id}
        label={t('register.acceptTerms')}
        checked={checked}
        onChange={(event) => onChange(event.currentTarget.checked)}
        error={error}
      />
    </Stack>
  )
}

/** All problems that the gateway reported, including those beside the fields. */
function Refusal({ error }: { readonly error: Error | null }) {
  const { t } = useTranslation()
  if (error === null) return null
  if (!(error instanceof ApiError) || error.texts.length === 0) return <Failure error={error} />
  return (
    <Alert color="red" variant="outline" icon={<Icon name="warning" />} title={t('register.refused')} role="alert">
      <List size="sm">
        {error.texts.map((text) => (
          <List.Item key={text}>{text}</List.Item>
        ))}
      </List>
    </Alert>
  )
}
