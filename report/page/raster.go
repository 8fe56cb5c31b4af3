package page

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// sheet draws shapes into an image, in light colours.
type sheet struct {
	image *image.RGBA
	scale float64
	fonts [2]*opentype.Font // regular and bold
	err   error
}

// maxPixels bounds the memory that an image takes.
const maxPixels = 1 << 26

// WritePNG writes the picture as PNG in light colours, with scale pixels to each
// pixel of its own size, 1 … 8. Its letters are those of the Go fonts.
func (p *Picture) WritePNG(w io.Writer, scale int) error {
	scale = min(max(scale, 1), 8)
	for scale > 1 && p.Width*p.Height*scale*scale > maxPixels {
		scale--
	}
	c := &sheet{image: image.NewRGBA(image.Rect(0, 0, p.Width*scale, p.Height*scale)), scale: float64(scale)}
	for i, data := range [][]byte{goregular.TTF, gomedium.TTF} {
		f, err := opentype.Parse(data)
		if err != nil {
			return err
		}
		c.fonts[i] = f
	}
	rectangle{0, 0, float64(p.Width), float64(p.Height), 0, panel}.raster(c)
	for _, s := range p.shapes {
		s.raster(c)
	}
	if c.err != nil {
		return c.err
	}
	return png.Encode(w, c.image)
}

// fill fills closed outlines, each given by its corners.
func (c *sheet) fill(col color.RGBA, outlines ...[]spot) {
	low, high := spot{math.Inf(1), math.Inf(1)}, spot{math.Inf(-1), math.Inf(-1)}
	for _, o := range outlines {
		for _, p := range o {
			low.X, low.Y = min(low.X, p.X), min(low.Y, p.Y)
			high.X, high.Y = max(high.X, p.X), max(high.Y, p.Y)
		}
	}
	at := image.Rect(int(math.Floor(low.X*c.scale)), int(math.Floor(low.Y*c.scale)),
		int(math.Ceil(high.X*c.scale)), int(math.Ceil(high.Y*c.scale))).Intersect(c.image.Rect)
	if at.Empty() {
		return
	}
	r := vector.NewRasterizer(at.Dx(), at.Dy())
	place := func(p spot) (x, y float32) {
		return float32(float64(p.X*c.scale) - float64(at.Min.X)), float32(float64(p.Y*c.scale) - float64(at.Min.Y))
	}
	for _, o := range outlines {
		r.MoveTo(place(o[0]))
		for _, p := range o[1:] {
			r.LineTo(place(p))
		}
		r.ClosePath()
	}
	r.Draw(c.image, at, image.NewUniform(col), image.Point{})
}

// box returns the corners of a rectangle.
func box(x, y, w, h float64) []spot {
	return []spot{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}
}

func (s rectangle) raster(c *sheet) { c.fill(rgb(s.fill.hex(false)), box(s.x, s.y, s.w, s.h)) }

// stroke draws the lines one after the other, dashed where dash is over 0.
func (c *sheet) stroke(col color.RGBA, points []spot, width, dash float64) {
	at := 0.0 // along the line
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		length := math.Hypot(b.X-a.X, b.Y-a.Y)
		if length == 0 {
			continue
		}
		ux, uy := (b.X-a.X)/length, (b.Y-a.Y)/length
		for from := 0.0; from < length; {
			to, on := length, true
			if dash > 0 {
				phase := math.Mod(at+from, 2*dash)
				on = phase < dash
				to = min(length, from+dash-math.Mod(phase, dash)+1e-6)
			}
			if on {
				nx, ny := -uy*width/2, ux*width/2
				p, q := spot{a.X + ux*from, a.Y + uy*from}, spot{a.X + ux*to, a.Y + uy*to}
				c.fill(col, []spot{{p.X + nx, p.Y + ny}, {q.X + nx, q.Y + ny}, {q.X - nx, q.Y - ny}, {p.X - nx, p.Y - ny}})
				if dash == 0 && width > 1 { // round joints
					c.fill(col, disc(q, width/2))
				}
			}
			from = to
		}
		at += length
	}
}

func disc(at spot, r float64) []spot {
	const corners = 24
	var o []spot
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		o = append(o, spot{at.X + r*cos, at.Y + r*sin})
	}
	return o
}

func (s polyline) raster(c *sheet) {
	dash := 0.0
	if s.dash != "" {
		dash = 4
	}
	c.stroke(rgb(s.stroke.hex(false)), s.points, s.width, dash)
}

func (s symbol) raster(c *sheet) {
	x, y, r, col := s.at.X, s.at.Y, s.size, rgb(s.fill.hex(false))
	switch s.kind {
	case '×':
		c.stroke(col, []spot{{x - r, y - r}, {x + r, y + r}}, 3, 0)
		c.stroke(col, []spot{{x - r, y + r}, {x + r, y - r}}, 3, 0)
	case '◆':
		c.fill(col, []spot{{x - r, y}, {x, y - r}, {x + r, y}, {x, y + r}})
	default:
		c.fill(col, disc(s.at, r))
	}
}

func (s label) raster(c *sheet) {
	f := c.fonts[0]
	if s.bold {
		f = c.fonts[1]
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: s.size * c.scale, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		c.err = err
		return
	}
	d := font.Drawer{Dst: c.image, Face: face}
	width := d.MeasureString(s.text)
	x, y := fixed.Int26_6(math.Round(s.at.X*c.scale*64)), fixed.Int26_6(math.Round(s.at.Y*c.scale*64))
	switch s.anchor {
	case "middle":
		x -= width / 2
	case "end":
		x -= width
	}
	if s.halo != none {
		d.Src = image.NewUniform(rgb(s.halo.hex(false)))
		for _, o := range disc(spot{}, 2*c.scale*64) {
			d.Dot = fixed.Point26_6{X: x + fixed.Int26_6(math.Round(o.X)), Y: y + fixed.Int26_6(math.Round(o.Y))}
			d.DrawString(s.text)
		}
	}
	d.Src, d.Dot = image.NewUniform(rgb(s.fill.hex(false))), fixed.Point26_6{X: x, Y: y}
	d.DrawString(s.text)
	c.err = face.Close()
}

func (s bars) raster(c *sheet) {
	// Each bar is a part of a pixel shorter than its op: the gap is what lies behind.
	gap := 0.0
	if s.separatedBy != none {
		gap = 0.5
	}
	for i, of := range s.rectangles {
		col := image.NewUniform(rgb(s.fills[i].hex(false)))
		for _, r := range of {
			x, y := s.x+float64(r.x)*s.w/float64(s.cols), s.y+float64(r.y)*s.h/float64(s.rows)
			w, h := float64(r.w)*s.w/float64(s.cols), float64(r.h)*s.h/float64(s.rows)
			if w > 3*gap {
				w -= gap
			}
			if w*c.scale < 1.5 { // too narrow for outlines: whole pixels
				at := image.Rect(int(math.Round(x*c.scale)), int(math.Round(y*c.scale)), int(math.Round((x+w)*c.scale)), int(math.Round((y+h)*c.scale)))
				draw.Draw(c.image, at, col, image.Point{}, draw.Src)
				continue
			}
			c.fill(col.C.(color.RGBA), box(x, y, w, h))
		}
	}
}

func (s class) raster(c *sheet) {
	for _, inner := range s.shapes {
		inner.raster(c)
	}
}
