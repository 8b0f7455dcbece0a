import { Button, type ButtonProps } from '@mantine/core'

/**
 * Submits a form that validates fields when they lose the focus. Pressing it takes the focus from no field: an error that
 * appears then would move the button away from the pointer, and the click would be lost.
 */
export function SubmitButton(props: Pick<ButtonProps, 'loading' | 'children'>) {
  return <Button type="submit" onMouseDown={(event) => event.preventDefault()} {...props} />
}
