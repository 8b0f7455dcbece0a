import { PasswordInput, Progress, SimpleGrid, Text } from '@mantine/core'
import type { PasswordRulesView } from '#features/registration/contract/register.ts'
import { useTranslation } from '../app/i18n.tsx'
import { type Strength, strengthOf } from './password-strength.ts'

interface PasswordFieldsProps {
  readonly ids: readonly [string, string]
  readonly label: string
  readonly rules: PasswordRulesView
  readonly password: string
  readonly repeated: string
  /** Values that the password must not repeat, such as the user's name. */
  readonly userValues: readonly string[]
  readonly onPassword: (value: string) => void
  readonly onRepeated: (value: string) => void
  readonly onBlur: (which: 'password' | 'password2') => void
  readonly error: string | undefined
  readonly repeatedError: string | undefined
}

const strengths = [
  'register.strength0',
  'register.strength1',
  'register.strength2',
  'register.strength3',
  'register.strength4',
] as const
const colors: Readonly<Record<Strength, string>> = { 0: 'red', 1: 'red', 2: 'yellow', 3: 'green', 4: 'green' }

export function PasswordFields(props: PasswordFieldsProps) {
  const { ids, label, rules, password, repeated, userValues, onPassword, onRepeated, onBlur, error, repeatedError } =
    props
  const { t } = useTranslation()
  const strength = strengthOf(password, userValues)
  const toggle = {
    visibilityToggleButtonProps: { 'aria-label': t('register.showPassword'), tabIndex: 0, 'aria-hidden': false },
  }
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <div>
        <PasswordInput
          id={ids[0]}
          label={label}
          description={t('register.passwordHint', { least: rules.minChars })}
          required
          autoComplete="new-password"
          value={password}
          onChange={(event) => onPassword(event.currentTarget.value)}
          onBlur={() => onBlur('password')}
          error={error}
          {...toggle}
        />
        {password !== '' && (
          <div>
            <Progress
              value={10 + strength * 22.5}
              color={colors[strength]}
              size="sm"
              mt={6}
              aria-label={t(strengths[strength])}
            />
            <Text size="sm" c="dimmed" role="status">
              {t(strengths[strength])}
            </Text>
          </div>
        )}
      </div>
      <PasswordInput
        id={ids[1]}
        label={t('register.password2')}
        description={t('register.password2Hint')}
        required
        autoComplete="new-password"
        value={repeated}
        onChange={(event) => onRepeated(event.currentTarget.value)}
        onBlur={() => onBlur('password2')}
        error={repeatedError}
        {...toggle}
      />
    </SimpleGrid>
  )
}
